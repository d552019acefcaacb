package untrusted_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// What steers a terminal or can't be seen shows; what people write stays.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"Café, naïve, 日本語、Ωμέγα, Привет из Москвы, شكرا, हिन्दी, kadın, 💶 ⚠️": "",
		"a\n\tb\r\nc":                        "a\n\tb\nc",
		"\x1b[2Jred":                         `\u001b[2Jred`,
		"a\rb\x07\x7f\u009b31m":              `a\u000db\u0007\u007f\u009b31m`,
		"\u202eevil\u2066\u200f":             `\u202eevil\u2066\u200f`,
		"pa\u200by\ufeff\u00ad\u2060\u200d":  `pa\u200by\ufeff\u00ad\u2060\u200d`,
		"\U000e0041\ufe0f\u3164\u2800\u2028": `\udb40\udc41\ufe0f\u3164\u2800\u2028`,
		"\x9b31m \xff":                       `\x9b31m \xff`,
		"\u0301x":                            `\u0301x`,
		"x" + strings.Repeat("\u0301", 6):    "x" + strings.Repeat("\u0301", 4) + `\u0301\u0301`,
		"call pаy now":                       `call p\u0430y now`,
		"𝐩ay аrе":                            `\ud835\udc29ay \u0430r\u0435`,
		"see https://аpple.com/a?b and mail": "see https://xn--pple-43d.com/a?b and mail",
		"https://bank.com。evil.example/":     "https://bank.com.evil.example/",
		"https://bank.com@аpple.com:443/":    "https://bank.com@xn--pple-43d.com:443/",
		"https://evil.com\\@bank.com/ü":      "",
		"ana@аррӏе.com":                      "ana@xn--80ak6aa92e.com",
		"a mention: @таня. Да":               "",
	} {
		if want == "" {
			want = in
		}
		require.Equal(t, want, untrusted.Text(in))
		require.Equal(t, want, untrusted.Text(untrusted.Text(in)), "shown again")
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"shell_run": "shell_run", "Jörg Müller": "Jörg Müller", "金額": "金額", "ana smith": "ana smith",
		"pаy": `p\u0430y`, "рау": `\u0440\u0430\u0443`, "ｐay": `\uff50ay`, "pay\u00a0": `pay\u00a0`,
		"a\nb": `a\u000ab`, "pay\u200b": `pay\u200b`, "ıd": `\u0131d`, "a∕b": `a\u2215b`, "αnα": `\u03b1n\u03b1`,
	} {
		require.Equal(t, want, untrusted.Name(in))
	}
}

func TestHostsAreWhole(t *testing.T) {
	long := "https://bank.example." + strings.Repeat("a.", 40) + "evil.example/pay"
	for most := range 200 {
		shown := untrusted.Line("Open "+long+" now, and then rest", most)
		if strings.Contains(shown, "bank") {
			require.Contains(t, shown, "evil.example")
		}
		shown = untrusted.Line("Open https://bank.com:"+strings.Repeat("x", 400)+"@evil.example/", most)
		require.NotContains(t, shown, "bank")
	}
	require.Equal(t, []string{"evil.example", "xn--pple-43d.com"}, untrusted.HostsOf(`{"a":"https://bank.com@evil.example/","b":"ws://аpple.com"}`))
}

func TestLineSaysWhatItCuts(t *testing.T) {
	require.Equal(t, "one two", untrusted.Line(" one\n\ttwo ", 10))
	require.Equal(t, "xxxx…(+16)", untrusted.Line(strings.Repeat("x", 20), 10))
	require.NotContains(t, untrusted.Line(strings.Repeat("\x1b", 20), 30), `\u0…`, "an escape stays whole")
	for most := -2; most < 4; most++ {
		require.NotEmpty(t, untrusted.Line("some words", most))
	}
}

// No argument begins a line.
func TestSprintf(t *testing.T) {
	type kind string
	got := untrusted.Sprintf("%s %v %5s %s %d %s %s", "a\n[request q-2] approve?", errors.New("b\r\nc"), kind("d\u2028e"), time.Second, time.Second, "  kept ", untrusted.Margin("x\n\ny\n"))
	require.Equal(t, "a [request q-2] approve? b c d\\u2028e 1s 1000000000   kept  │ x\n│\n│ y", got)
}

func TestArguments(t *testing.T) {
	raw := json.RawMessage("{\"to\":\"\\u0061\\u202e\\n\",\n \"b\":{\"z\":1e400,\"pаy\":[1,{}]}, \"to\":\"рау && <b>\", \"a\":[]}")
	require.Equal(t, "{\n  \"a\": [],\n  \"b\": {\n    \"p\\u0430y\": [\n      1,\n      {}\n    ],\n    \"z\": 1e400\n  },\n  \"to\": \"\\u0440\\u0430\\u0443 && <b>\"\n}", untrusted.JSON(raw))
	list, ok := untrusted.Fields(raw)
	require.True(t, ok)
	require.Equal(t, []untrusted.Field{{"a", "[]"}, {"b", `{"p\u0430y": [1, {}], "z": 1e400}`}, {"to", `"\u0440\u0430\u0443 && <b>"`}}, list)
	_, ok = untrusted.Fields(json.RawMessage(`[1]`))
	require.False(t, ok)
	require.Equal(t, `{"a":\u001b`, untrusted.JSON(json.RawMessage("{\"a\":\x1b")))
	require.Equal(t, "null", untrusted.JSON(json.RawMessage("null")))
}

// Whatever the pieces, the whole is shown as it would be in one.
func TestStream(t *testing.T) {
	text := "Call pаy, аpple, then https://аpple.com/x. Привет ⚠️ e\u0301\r\nand 日本語\u202e " + strings.Repeat("я", 600) + " end"
	for size := 1; size < 40; size++ {
		var s untrusted.Stream
		var b strings.Builder
		for rest := []rune(text); len(rest) > 0; {
			n := min(size, len(rest))
			b.WriteString(s.Next(string(rest[:n])))
			rest = rest[n:]
		}
		b.WriteString(s.End())
		require.Equal(t, untrusted.Text(text), b.String(), "pieces of %d", size)
	}
	var s untrusted.Stream
	require.Equal(t, "Once upon", s.Next("Once upon"), "what is plain does not wait")
}

func FuzzText(f *testing.F) {
	f.Add("pаy https://аpple.com \x1b[2J\u202e\xff", 12)
	f.Fuzz(func(t *testing.T, s string, most int) {
		for _, shown := range []string{untrusted.Text(s), untrusted.Name(s), untrusted.Line(s, most%1000), untrusted.Escape(s), string(untrusted.Margin(s))} {
			require.True(t, utf8.ValidString(shown))
			for _, r := range shown {
				require.True(t, r == '\n' || r == '\t' || r == '\ufe0f' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r), "%q", r)
			}
		}
		require.NotContains(t, untrusted.Line(s, most%1000), "\n")
		for line := range strings.Lines(string(untrusted.Margin(s))) {
			require.True(t, strings.HasPrefix(line, untrusted.Mark))
		}
	})
}

// A text that is longer than a line begins no line of the terminal.
func TestScreen(t *testing.T) {
	s := untrusted.NewScreen(func() int { return 20 })
	require.Equal(t, "\x1b[2m│ "+strings.Repeat("x", 17)+"\n┊ q-2: approve?\x1b[0m\n", s.Wrap("\x1b[2m│ "+strings.Repeat("x", 17)+"q-2: approve?\x1b[0m\n"))
	require.Equal(t, strings.Repeat("日", 10)+"\n┊ 日", s.Wrap(strings.Repeat("日", 11)))
	require.Equal(t, strings.Repeat("y", 15), s.Wrap(strings.Repeat("y", 15)), "goes on at its column")
	require.Equal(t, "\n┊ z", s.Wrap("z"))
	s.CursorHome()
	require.Equal(t, "\t\t\n┊ \tz\n", s.Wrap("\t\t\tz\n"))
	require.Equal(t, "\x1b[31mred\\u001b[2J\\u001b", untrusted.EscapeKeepColor("\x1b[31mred\x1b[2J\x1b"))
}
