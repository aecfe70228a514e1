"""`python -m rebalancer`, and the command `rebalancer`."""

from rebalancer.cli import main

if __name__ == "__main__":
    main()
