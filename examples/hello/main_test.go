package main

func Example() {
	main()
	// Output: completed after 2 turns: 19 + 23 is 42.
}
