"""What has no domain: files, clocks, text, processes, cancellation."""
