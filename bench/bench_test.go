package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test binary is its own worker, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workCommand {
		main()
		return
	}
	m.Run()
}

// Every benchmark measures its smallest cells, on both sides. No time is looked at, but the
// figures of "cold" that are counts are.
func TestBenchmarks(t *testing.T) {
	for name, c := range map[string]struct {
		only string
		rows int
	}{
		"turn":       {"^1 kB", 10},
		"throughput": {"^1 runs", 3},
		"cost":       {"^turn 10, ", 14},
		"hold":       {"1000 in flight|^resume, cold|^stop", 6},
		"tree":       {"^(1|4) agents, 1 worker", 14},
		"parked":     {"^10 runs, out", 6},
		"start":      {"process", 1},
		"replay":     {"^10 turns, local", 1},
		"cold":       {"^folder", 6},
		"flow":       {"^(5|60) agents|steps", 14},
		"files":      {"images", 17},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{quick: true, reps: 1, only: regexp.MustCompile(c.only), progress: io.Discard}
			for _, b := range benchmarks {
				if b.name != name {
					continue
				}
				r := o.measure(t.Context(), []*benchmark{b})
				require.NoError(t, r.verdict(false))
				require.Len(t, r.Results[0].Rows, c.rows)
				if name == "cold" {
					coldCallsDoNotGrow(t, r.Results[0].Rows)
				}
				for _, one := range r.Results[0].Rows {
					require.Len(t, one.Ours, 1, one.What)
					if one.Reference == "" { // the figure stands alone
						require.Positive(t, one.Ours[0], one.What)
						continue
					}
					require.Len(t, one.Beside, 1, one.What)
					if name != "parked" && one.What != "refused" { // small figures may well be nothing
						require.Positive(t, one.Ours[0], one.What)
						require.Positive(t, one.Beside[0], one.What)
					}
				}
				return
			}
			t.Fatal("there is no such benchmark")
		})
	}
}

// A process that comes to a chat of 4,000 messages calls the store about as often as one that
// comes to a chat of 400.
func coldCallsDoNotGrow(t *testing.T, rows []row) {
	t.Helper()
	i := slices.IndexFunc(rows, func(r row) bool { return r.Cell == "folder, 4000 messages" && r.What == coldCalls })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, "400 messages", rows[i].Reference)
	require.LessOrEqual(t, rows[i].Ours[0], 1.2*rows[i].Beside[0], rows[i].What)
}

// An interrupted tree of several processes goes on after one interrupt and is stopped
// after the next.
func TestTreeOfTwoProcesses(t *testing.T) {
	b := &bench{options: &options{progress: io.Discard}, result: &result{}, reps: 2}
	s, err := newBenchEnv(t.Context(), b, nil)
	require.NoError(t, err)
	defer s.close()
	got, err := s.tree(t.Context(), "7 agents", 7, 2)
	require.NoError(t, err)
	require.Empty(t, b.Faults)
	for _, side := range []string{sideBare, sideTrees} {
		for _, what := range []string{quiet, rootRest, rootHear, allActivitiesEnded, treeStarted} {
			require.Len(t, got.of(side, what), 2)
			require.Positive(t, got.of(side, what)[0], "%s: %s", side, what)
		}
	}
}

// A report says what was measured in a table and in JSON, and what is beyond its bar.
func TestReport(t *testing.T) {
	r := newReport()
	res := r.begin("some")
	res.add(row{Cell: "a cell", What: "good", Unit: "ms", Ours: []float64{3, 1, 2}, Reference: "floor", Beside: []float64{2, 4}, Target: atMost(1.1)})
	res.add(row{Cell: "a cell", What: "slow", Unit: "ms", Ours: []float64{1500}, Target: within(1000)})
	res.add(row{Cell: "a cell", What: "few", Ours: []float64{8}, Reference: "floor", Beside: []float64{10}, Target: atLeast(0.9)})
	res.add(row{Cell: "a cell", What: "lost", Target: atLeast(0.9)})
	res.finish(nil)
	require.NoError(t, r.verdict(false))
	err := r.verdict(true)
	require.ErrorContains(t, err, "slow, ms: 1,500")
	require.ErrorContains(t, err, "few")
	require.ErrorContains(t, err, "lost")
	require.NotContains(t, err.Error(), "good")
	var table, raw bytes.Buffer
	require.NoError(t, r.print(&table))
	require.Contains(t, table.String(), "| a cell | good, ms | 2 (1 to 3) | floor 3 (2 to 4) | 0.67  | ≤ 1.10 × ")
	require.Contains(t, table.String(), "**missed**")
	require.NoError(t, r.encode(&raw))
	var back report
	require.NoError(t, json.Unmarshal(raw.Bytes(), &back))
	require.Equal(t, r.Results[0].Rows, back.Results[0].Rows)
	res.finish(fault("a run was lost"))
	require.ErrorContains(t, r.verdict(false), "some: a run was lost")
}

func TestHelpListsEveryBenchmark(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--help"}, &out))
	for _, b := range benchmarks {
		require.Contains(t, out.String(), "go run ./bench "+b.name+" ")
	}
	require.ErrorContains(t, run(t.Context(), []string{"nothing"}, &out), "no benchmark")
	require.ErrorContains(t, run(t.Context(), []string{"turn", "-reps", "-1"}, &out), "must be positive")
}

// -json writes the samples beside the tables.
func TestJSONFile(t *testing.T) {
	o := &options{json: filepath.Join(t.TempDir(), "figures.json")}
	var out bytes.Buffer
	require.NoError(t, o.show(newReport(), &out))
	require.FileExists(t, o.json)
	require.NotEmpty(t, out.String())
}

// A -only that finds nothing is no success: it names the cells that there are.
func TestOnlyFindsNoCell(t *testing.T) {
	err := run(t.Context(), []string{"tree", "-quick", "-check", "-only", "^7 agents"}, io.Discard)
	require.ErrorContains(t, err, "13 agents, 1 worker")
}
