#!/bin/sh
# Names the lines of a file that have more than 120 characters.
awk 'length > 120 { print FILENAME ": " FNR }' "$1"
