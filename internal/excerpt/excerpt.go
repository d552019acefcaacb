package excerpt

import (
	"fmt"
	"strings"
)

// Of returns a text of at most most bytes unchanged. From a longer one it returns the
// beginning and a line that says so. whole is the text's length in bytes before anything
// was cut from it.
func Of(text string, most, whole int) string {
	if len(text) <= most {
		return text
	}
	// The cut may fall inside a character; ToValidUTF8 drops the rest of it.
	head := strings.ToValidUTF8(text[:most], "")
	return head + fmt.Sprintf("\n[cut here: the result has %d bytes, the first %d are shown]", whole, len(head))
}
