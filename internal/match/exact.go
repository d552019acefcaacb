package match

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Exact returns an error if a JSON value has a number that changes when it is read as a
// float64 and written as short as possible. Who compares floats could take it for another
// number.
func Exact(raw []byte) error {
	v, err := value(raw)
	if err != nil {
		return err
	}
	return exact(v)
}

func exact(v any) error {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if err := exact(one); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range keys(v) {
			if err := exact(v[name]); err != nil {
				return err
			}
		}
	case json.Number:
		// First: fewer digits make the exact comparison below cheap.
		if significant(v) > floatDigits {
			return fmt.Errorf("the number %.20s has more digits than are compared", v)
		}
		f, err := v.Float64()
		if err != nil {
			return fmt.Errorf("the number %.20s is out of range", v)
		}
		is, err := number(v)
		if err != nil {
			return err
		}
		if shown, err := number(json.Number(strconv.FormatFloat(f, 'g', -1, 64))); err != nil || shown.Cmp(is) != 0 {
			return fmt.Errorf("the number %.20s has more digits than are compared", v)
		}
	}
	return nil
}

// floatDigits is how many digits the shortest form of a float64 has at most.
const floatDigits = 17

// significant returns how many digits a number has without zeros at its ends.
func significant(n json.Number) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	return len(strings.Trim(strings.ReplaceAll(strings.TrimPrefix(mantissa, "-"), ".", ""), "0"))
}
