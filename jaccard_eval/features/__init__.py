"""What can be asked of boxes and label maps, a room each; `report` of a room writes its results for people."""
