"""How the example packages are made: set-up from pinned wheels, training, export. No part of the packages."""
