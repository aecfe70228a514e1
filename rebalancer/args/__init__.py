"""What the arguments in a policy are made of: values that are checked as they are read.

Arguments are values; what is computed from them stands in the packages that use them.
"""
