"""Published files to data sets: tables, idx files, images, networks."""
