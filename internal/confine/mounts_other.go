//go:build !linux

package confine

func (Places) mountedIn(string) string     { return "" }
func (Places) mountedAround(string) string { return "" }
