package match

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Exact returns an error if a JSON value has a number that a float64, written as short as it
// can be, is not: who compares by floats could take it for another one.
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

// floatDigits are as many as a float64 has that is written as short as it can be.
const floatDigits = 17

// significant is how many digits a number has without zeros at its ends.
func significant(n json.Number) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	return len(strings.Trim(strings.ReplaceAll(strings.TrimPrefix(mantissa, "-"), ".", ""), "0"))
}
