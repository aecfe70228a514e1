"""Requests and limits from what containers used: windows, rules and workloads; no I/O, no clock."""
