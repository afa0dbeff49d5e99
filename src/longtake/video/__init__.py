"""Media files: frames, sound and subtitles of a film."""
