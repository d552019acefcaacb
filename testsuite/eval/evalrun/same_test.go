package evalrun

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// An evaluator with a suite takes no case, and runs no command, that only the server names.
func TestAnEvaluatorTakesOnlyItsOwnCases(t *testing.T) {
	own := &eval.Suite{Name: "s", Agent: "a", Cases: []eval.Case{{Name: "c", Input: []byte(`"do"`), Graders: []grade.Spec{{Command: &grade.Command{Run: []string{"./check.sh"}}}}}}}
	s := &steps{&Options{Suite: own, Dir: t.TempDir(), Sandbox: &grade.Sandbox{}}}
	same := own.Complete(0)
	require.NoError(t, s.allowed(&same))
	other := own.Complete(0)
	other.Graders = []grade.Spec{{Command: &grade.Command{Run: []string{"/tmp/other.sh"}}}}
	in := gradeInput{Session: "s-1.c.1", Case: other, N: 1}
	_, err := s.outside(t.Context(), outsideInput{in, 0})
	require.ErrorIs(t, err, agent.CodeDenied)
	_, err = s.grade(t.Context(), in)
	require.ErrorIs(t, err, agent.CodeDenied)
	_, err = s.begin(t.Context(), beginInput{Session: "s-1.c.1", Case: other, N: 1})
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "nothing of it is run")
}

// A file of a suite is a regular file below the evaluator's directory: anything else could be waited for
// without end.
func TestFilesOfASuiteAreRegular(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("four"), 0o600))
	data, err := readFile(dir, "a.txt")
	require.NoError(t, err)
	require.Equal(t, "four", string(data))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "b"), 0o700))
	for path, why := range map[string]string{"b": "no regular file", "../a.txt": "escapes", "c": "no such file"} {
		_, err := readFile(dir, path)
		require.ErrorIs(t, err, agent.CodeInvalidInput, path)
		require.ErrorContains(t, err, why, path)
	}
}
