package match

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostile are schemas and payloads whose comparison costs as much as can be had from 2 kB or
// 8 kB and 64 kB.
func hostile() map[string][2]string {
	times := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	object := func(n int, name func(int) string) string {
		var names []string
		for i := range n {
			names = append(names, `"`+name(i)+`":1`)
		}
		return "{" + strings.Join(names, ",") + "}"
	}
	short := func(i int) string { return fmt.Sprintf("%x", i) }
	alike := func(i int) string { return strings.Repeat("a", 100) + fmt.Sprintf("%04x", i) }
	fraction := strings.Repeat("1", 199) + "." + strings.Repeat("3", 200)
	return map[string][2]string{
		"integers":     {`{"items":{"type":[` + times(700, `"integer"`) + `]}}`, `[` + times(12, fraction) + `]`},
		"exponents":    {`{"items":{"type":"integer"}}`, `[` + times(10, "1e400") + `]`},
		"small":        {`{"items":{"type":"integer"}}`, `[` + times(10, "1e-400") + `]`},
		"bounds":       {`{"items":{"allOf":[` + times(80, `{"minimum":0.333}`) + `]}}`, `[` + times(12, fraction) + `]`},
		"wholes":       {`{"items":{"allOf":[` + times(80, `{"minimum":1}`) + `]}}`, `[` + times(10_000, "1") + `]`},
		"halves":       {`{"items":{"allOf":[` + times(80, `{"minimum":1}`) + `]}}`, `[` + times(4_000, "1.5") + `]`},
		"values":       {`{"items":{"not":{"enum":[` + times(900, "1") + `]}}}`, `[` + times(10_000, `"x"`) + `]`},
		"lists":        {`{"items":{"not":{"enum":[` + times(400, "[[]]") + `]}}}`, `[` + times(5_000, `[]`) + `]`},
		"objects":      {`{"items":{"not":{"enum":[` + times(200, `{"a":{}}`) + `]}}}`, `[` + times(2_000, `{"a":1}`) + `]`},
		"types":        {`{"items":{"allOf":[` + times(100, `{"type":"null"}`) + `]}}`, `[` + times(10_000, `null`) + `]`},
		"alternatives": {`{"items":{"anyOf":[` + times(300, `false`) + `]}}`, `[` + times(10_000, `1`) + `]`},
		"a long text":  {`{"allOf":[` + times(100, `{"maxLength":1000000000}`) + `]}`, `"` + strings.Repeat("a", 64_000) + `"`},
		"runes":        {`{"allOf":[` + times(100, `{"maxLength":1000000000}`) + `]}`, `"` + strings.Repeat("é", 32_000) + `"`},
		"long texts":   {`{"items":{"not":{"enum":[` + times(3, `"`+strings.Repeat("a", 600)+`"`) + `]}}}`, `[` + times(100, `"`+strings.Repeat("a", 599)+`b"`) + `]`},
		"names":        {`{"allOf":[` + times(80, `{"properties":{}}`) + `]}`, object(5_000, short)},
		"alike names":  {`{"allOf":[` + times(80, `{"properties":{}}`) + `]}`, object(550, alike)},
		"required":     {`{"items":{"required":[` + times(400, `"a"`) + `]}}`, `[` + times(2_000, `{"a":1}`) + `]`},
		"nothing":      {`{}`, `[` + times(10_000, "1") + `]`},
		"brackets":     {`{"items":{"items":{}}}`, `[` + times(5_000, "[]") + `]`},
		"escapes":      {`{"maxLength":3}`, `"` + strings.Repeat(`\u00e9`, 10_600) + `"`},
		"deep":         {strings.Repeat(`{"items":`, 20) + `{}` + strings.Repeat(`}`, 20), strings.Repeat("[", 20) + times(10_000, "1") + strings.Repeat("]", 20)},
	}
}

// However a schema and payloads are made, comparing them costs no more than the budget: what
// is spent is counted, and nothing more is done once it is.
func TestABudgetBoundsAllThatIsCompared(t *testing.T) {
	for what, c := range hostile() {
		s, err := Read([]byte(c[0]))
		require.NoError(t, err, what)
		require.LessOrEqual(t, len(c[0]), 8<<10, what)
		b := NewBudget(Looks)
		held := 0
		for range 1_000 { // as many events as wait at most
			v, err := ReadValue([]byte(c[1]), b)
			if err == nil {
				_, err = s.Fits(v, b)
			}
			if err != nil {
				require.ErrorIs(t, err, ErrTooLarge, what)
				break
			}
			held++
		}
		require.Less(t, held, 400, what)
		require.True(t, b.Exceeded(), what)
		before := b.Spent()
		_, err = ReadValue([]byte(`[1]`), b)
		require.ErrorIs(t, err, ErrTooLarge, what)
		require.Equal(t, before, b.Spent(), "what is used up counts no further")
	}
}

// The schema that took four minutes of workflow code: a type named over and over is looked at
// once, and a number is made a fraction once, however many parts of a schema look at it.
func TestWhatIsLookedAtAgainCostsLittle(t *testing.T) {
	value := []byte(`[` + strings.TrimSuffix(strings.Repeat(strings.Repeat("1", 199)+"."+strings.Repeat("3", 200)+",", 12), ",") + `]`)
	cost := func(schema string) int {
		s, err := Read([]byte(schema))
		require.NoError(t, err)
		b := NewBudget(10 * Looks)
		v, err := ReadValue(value, b)
		require.NoError(t, err)
		fits, err := s.Fits(v, b)
		require.NoError(t, err)
		require.False(t, fits)
		return b.Spent()
	}
	list := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	once := cost(`{"items":{"type":"integer"}}`)
	require.Equal(t, once, cost(`{"items":{"type":[`+list(700, `"integer"`)+`]}}`))
	require.Less(t, cost(`{"items":{"anyOf":[`+list(300, `{"type":"integer"}`)+`]}}`), once+12*300*3)
}

// BenchmarkBudget is how long a whole budget takes at most: 10 ms are the bound of a workflow
// task.
func BenchmarkBudget(b *testing.B) {
	for what, c := range hostile() {
		s, err := Read([]byte(c[0]))
		require.NoError(b, err)
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				left := NewBudget(Looks)
				for {
					v, err := ReadValue([]byte(c[1]), left)
					if err != nil {
						break
					}
					if _, err := s.Fits(v, left); err != nil {
						break
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms/budget")
		})
	}
}

// Many equal schemas are read in no time that anybody notices.
func BenchmarkRead(b *testing.B) {
	for what, c := range hostile() {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				_, err := Read([]byte(c[0]))
				require.NoError(b, err)
			}
		})
	}
}
