package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/testsuite/eval"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Stamp    string      `xml:"timestamp,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitText `xml:"failure,omitempty"`
	Error   *junitText `xml:"error,omitempty"`
	Skipped *junitText `xml:"skipped,omitempty"`
	Out     string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes the report as JUnit's XML: one test for each case, since the case has the
// threshold.
func (r *Report) JUnit(w io.Writer) error {
	s := junitSuite{Name: r.Suite, Tests: len(r.Cases), Stamp: r.Started.UTC().Format("2006-01-02T15:04:05")}
	total := time.Duration(0)
	for _, c := range r.Cases {
		one := junitCase{Class: r.Suite, Name: c.Name}
		took := time.Duration(0)
		var lines []string
		for _, t := range r.trials {
			if t.Case == c.Name {
				took += time.Duration(t.Duration)
				lines = append(lines, lineOf(t))
			}
		}
		total += took
		one.Time, one.Out = secondsOf(took), clean(strings.Join(lines, "\n"))
		text := &junitText{Message: clean(c.Words()), Text: one.Out}
		switch c.State {
		case StateFailed:
			one.Failure = text
			s.Failures++
		case StateError:
			one.Error = text
			s.Errors++
		case StateLeftOut, StateRunning:
			one.Skipped = text
			s.Skipped++
		}
		if c.State != StatePassed {
			one.Out = ""
		}
		s.Cases = append(s.Cases, one)
	}
	s.Time = secondsOf(total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func secondsOf(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// lineOf writes a trial on a line.
func lineOf(t eval.Trial) string {
	line := fmt.Sprintf("trial %d: %s", t.N, t.State)
	if t.Session != "" {
		line += ", session " + t.Session
	}
	if t.Why != "" {
		line += ": " + strings.Join(strings.Fields(t.Why), " ")
	}
	return line
}

// Words says what came of a case, on a line.
func (c *Case) Words() string {
	text := fmt.Sprintf("%d of %d trials passed, and %.3g are needed", c.Passed, c.Planned, c.MinPassRate*float64(c.Planned))
	for _, part := range []struct {
		n    int
		what string
	}{{c.Errors, "could not be made or graded"}, {c.LeftOut, "were left out"}, {c.Open, "are open"}} {
		if part.n > 0 {
			text += fmt.Sprintf("; %d %s", part.n, part.what)
		}
	}
	return text
}

// clean replaces what would change how the text around it is read: controls, and marks that
// turn its direction. The writers escape the rest.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ', r >= 0x7f && r < 0xa0, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff, r == 0x061c, r >= 0xe0000 && r <= 0xe007f:
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}
