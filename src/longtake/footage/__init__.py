"""What a method may ask of a video, whatever the video is made of. Nothing here knows the index."""
