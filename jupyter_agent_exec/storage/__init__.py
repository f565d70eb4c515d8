"""Files that are on disk before anybody is told so, and files that several servers share."""
