#!/bin/sh
got=$(sh total.sh orders.csv)
want=1070
if [ "$got" != "$want" ]; then
	echo "FAIL: the total is $got, it should be $want"
	exit 1
fi
echo "PASS: the total is $got"
