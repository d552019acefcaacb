#!/bin/sh
# Prints the total of the order in the file $1: quantity times price, and the discount.
awk -F, 'NR > 1 { total += $2 * $3 + $4 } END { print total }' "$1"
