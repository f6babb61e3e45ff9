"""The paper's baselines and NICE, one file per method."""
