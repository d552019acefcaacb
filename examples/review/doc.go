// Package review has a flow: five agents review a change at once, an author is asked, and
// somebody approves the change within a week. The program worker runs it.
package review
