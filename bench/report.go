package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report is everything that was measured, as -json writes it.
type report struct {
	Machine machine   `json:"machine"`
	Results []*result `json:"results"`
}

// machine is where it was measured.
type machine struct {
	CPU  string `json:"cpu,omitempty"`
	CPUs int    `json:"cpus"`
	OS   string `json:"os"`
	Go   string `json:"go"`
}

// result is the result of a benchmark.
type result struct {
	Name  string    `json:"name"`
	Began time.Time `json:"began"`
	Took  float64   `json:"took_s"`
	// Load is the machine's load average over a minute, before and after. The first shows
	// what else ran.
	Load [2]string `json:"load"`
	// Stolen is the part of the processor time that the hypervisor gave to others. If it
	// is not small, do not trust the times.
	Stolen float64   `json:"stolen"`
	taken  [2]uint64 // stolen and total time at the beginning
	cells  []string  // which there are, whether they are measured or not
	Rows   []row     `json:"rows"`
	Faults []string  `json:"faults,omitempty"`
}

// row is a line of a table: a measurement of ours, and what it is compared with.
type row struct {
	Cell string `json:"cell"`
	What string `json:"what"`
	Unit string `json:"unit"`
	// Ours are samples in the order in which they were taken. Beside are those of the
	// Reference. Both are empty if the figure stands alone.
	Ours      []float64 `json:"ours"`
	Reference string    `json:"reference,omitempty"`
	Beside    []float64 `json:"beside,omitempty"`
	Target    *target   `json:"target,omitempty"`
}

// target is the limit of a median, alone or as a ratio to the reference's.
type target struct {
	Most   float64 `json:"most,omitempty"`
	Least  float64 `json:"least,omitempty"`
	Itself bool    `json:"itself,omitempty"`
}

func atMost(ratio float64) *target  { return &target{Most: ratio} }
func atLeast(ratio float64) *target { return &target{Least: ratio} }

// within is a limit of the figure itself.
func within(most float64) *target { return &target{Most: most, Itself: true} }

func (b *target) String() string {
	if b == nil {
		return ""
	}
	sign, v := "≤", b.Most
	if b.Least > 0 {
		sign, v = "≥", b.Least
	}
	if b.Itself {
		return sign + " " + number(v)
	}
	return fmt.Sprintf("%s %.2f ×", sign, v)
}

// ratio returns the ratio to the reference. Samples that were taken in turns are compared
// pairwise, and the median of the ratios is used: what the machine does meanwhile affects
// both of a pair.
func (r row) ratio() float64 {
	if len(r.Ours) != len(r.Beside) {
		return median(r.Ours) / median(r.Beside)
	}
	pairs := make([]float64, len(r.Ours))
	for i := range pairs {
		pairs[i] = r.Ours[i] / r.Beside[i]
	}
	return median(pairs)
}

// misses reports whether a row exceeds its limit. A row that could not be measured does.
func (r row) misses() bool {
	if r.Target == nil {
		return false
	}
	v := r.ratio()
	if r.Target.Itself {
		v = median(r.Ours)
	}
	return len(r.Ours) == 0 || !r.Target.Itself && len(r.Beside) == 0 || v < r.Target.Least || r.Target.Most > 0 && v > r.Target.Most
}

func newReport() *report {
	return &report{Machine: machine{cpu(), runtime.NumCPU(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}}
}

func (r *report) begin(name string) *result {
	res := &result{Name: name, Began: time.Now().UTC().Truncate(time.Second), Load: [2]string{load()}, taken: stolen()}
	r.Results = append(r.Results, res)
	return res
}

func (r *result) finish(err error) {
	r.Took, r.Load[1] = time.Since(r.Began).Seconds(), load()
	if now := stolen(); now[1] > r.taken[1] {
		r.Stolen = float64(now[0]-r.taken[0]) / float64(now[1]-r.taken[1])
	}
	if err != nil {
		r.Faults = append(r.Faults, err.Error())
	}
}

func (r *result) add(one row) { r.Rows = append(r.Rows, one) }

func (r *report) encode(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// print writes a Markdown table for each benchmark.
func (r *report) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%d × %s, %s, %s\n", r.Machine.CPUs, cmp.Or(r.Machine.CPU, "CPU"), r.Machine.OS, r.Machine.Go)
	for _, res := range r.Results {
		fmt.Fprintf(w, "\n%s: %s, %.0f s, load %s before and %s after, %.0f %% of the time stolen\n\n", res.Name, res.Began.Format(time.DateTime), res.Took, res.Load[0], res.Load[1], 100*res.Stolen)
		lines := [][]string{{"cell", "what", "fermata", "beside", "ratio", "bar"}}
		for _, one := range res.Rows {
			lines = append(lines, one.cells())
		}
		table(w, lines)
		for _, f := range res.Faults {
			fmt.Fprintf(w, "\nWRONG: %s\n", f)
		}
	}
	return w.Flush()
}

func (r row) cells() []string {
	beside, ratio := "", ""
	if len(r.Beside) > 0 {
		beside, ratio = fmt.Sprintf("%s %s", r.Reference, spread(r.Beside)), fmt.Sprintf("%.2f", r.ratio())
	}
	limit := r.Target.String()
	if r.misses() {
		limit += " **missed**"
	}
	what := r.What
	if r.Unit != "" {
		what += ", " + r.Unit
	}
	return []string{r.Cell, what, spread(r.Ours), beside, ratio, limit}
}

// table writes lines as an aligned Markdown table.
func table(w io.Writer, lines [][]string) {
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, c := range line {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	for n, line := range lines {
		for i, c := range line {
			fmt.Fprintf(w, "| %s%s ", c, strings.Repeat(" ", width[i]-len([]rune(c))))
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, n := range width {
				fmt.Fprintf(w, "|%s", strings.Repeat("-", n+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
}

// verdict returns an error if a result was wrong or, with check, if a limit was missed.
func (r *report) verdict(check bool) error {
	var faults []error
	for _, res := range r.Results {
		for _, f := range res.Faults {
			faults = append(faults, fmt.Errorf("%s: %s", res.Name, f))
		}
		for _, one := range res.Rows {
			if check && one.misses() {
				c := one.cells()
				faults = append(faults, fmt.Errorf("%s: %s: %s: %s, beside %s, ratio %s: the bar is %s", res.Name, one.Cell, c[1], c[2], cmp.Or(c[3], "nothing"), cmp.Or(c[4], "none"), one.Target))
			}
		}
	}
	return errors.Join(faults...)
}

func median(list []float64) float64 {
	n := len(list)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread returns the median, with the range if there is one.
func spread(list []float64) string {
	switch len(list) {
	case 0:
		return "-"
	case 1:
		return number(list[0])
	}
	least, most := number(slices.Min(list)), number(slices.Max(list))
	if least == most {
		return least
	}
	return fmt.Sprintf("%s (%s to %s)", number(median(list)), least, most)
}

// number returns a figure with as many digits as it deserves.
func number(v float64) string {
	switch {
	case v == float64(int64(v)) && v < 1000 && v > -1000:
		return fmt.Sprintf("%.0f", v)
	case v < 1 && v > -1:
		return fmt.Sprintf("%.2g", v)
	case v < 10 && v > -10:
		return fmt.Sprintf("%.2f", v)
	case v < 100 && v > -100:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// load returns the machine's load average over a minute, if it is known.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(data))[0]
}

// stolen returns the processor time since the machine's start, in ticks: what the
// hypervisor took, and all. Both are zero if unknown.
func stolen() (ticks [2]uint64) {
	data, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(data), "\n")
	const steal = 8 // of user nice system idle iowait irq softirq steal, behind "cpu"
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil || i > steal { // the time of guests is already in user's
			continue
		}
		ticks[1] += n
		if i == steal {
			ticks[0] = n
		}
	}
	return ticks
}

// cpu returns the name of the machine's processor, if it is known.
func cpu() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return ""
}
