package skill

import (
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-agents/fermata/agent"
)

// Task is what skills are matched with.
type Task struct {
	// Text is what the user asks for.
	Text string
	// Files are paths of files that the task is about, besides those that Text names.
	Files []string
}

// What a candidate gets besides for its words. A path or a name weighs more than any words.
const (
	pathBoost = 50
	nameBoost = 100
	// leastWords is how many different words of a task have to be in a description: one
	// alone, such as "file", says nothing.
	leastWords = 2

	maxTaskText = 32 << 10
	maxWords    = 2000
)

// Match returns the skills that fit a task, the best first. A skill fits if the task names
// it, if a file matches one of its paths, or if two words of the task are in its description
// or in when_to_use. Words are weighted as BM25 does: one that few skills have counts more.
// Skills that only users name are left out. Equal tasks and skills give equal results.
func Match(task Task, skills []agent.Skill) (found []agent.SkillCandidate) {
	asked := wordsOf(task.Text)
	files := append(slices.Clone(task.Files), pathsIn(task.Text)...)
	var docs []doc
	for _, s := range skills {
		if !s.UserOnly {
			docs = append(docs, newDoc(s))
		}
	}
	for _, d := range docs {
		score, shared := d.bm25(asked, docs)
		var why []string
		if len(shared) < leastWords {
			score = 0
		} else {
			why = append(why, "words: "+strings.Join(shared, " "))
		}
		if p := d.pathFor(files); p != "" {
			score, why = score+pathBoost, append(why, "path: "+p)
		}
		if mentions(task.Text, d.Name) {
			score, why = score+nameBoost, append(why, "named")
		}
		if len(why) > 0 {
			found = append(found, agent.SkillCandidate{Name: d.Name, Score: math.Round(score*100) / 100, Reason: strings.Join(why, "; ")})
		}
	}
	slices.SortStableFunc(found, func(a, b agent.SkillCandidate) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return found
}

// doc is a skill with the words that it is found by. Those of when_to_use count half.
type doc struct {
	agent.Skill
	weight map[string]float64
	length float64
}

func newDoc(s agent.Skill) doc {
	d := doc{Skill: s, weight: map[string]float64{}}
	for _, w := range wordsOf(s.Description) {
		d.weight[w]++
		d.length++
	}
	for _, w := range wordsOf(s.WhenToUse) {
		d.weight[w] += 0.5
		d.length += 0.5
	}
	return d
}

// bm25 returns the usual score of a document for the words of a question, and which of them
// it has.
func (d doc) bm25(asked []string, all []doc) (score float64, shared []string) {
	const k, b = 1.2, 0.75
	mean := 0.0
	for _, o := range all {
		mean += o.length / float64(len(all))
	}
	for _, w := range asked {
		f := d.weight[w]
		if f == 0 || slices.Contains(shared, w) {
			continue
		}
		shared = append(shared, w)
		n := 0.0
		for _, o := range all {
			if o.weight[w] > 0 {
				n++
			}
		}
		idf := math.Log(1 + (float64(len(all))-n+0.5)/(n+0.5))
		score += idf * f * (k + 1) / (f + k*(1-b+b*d.length/max(mean, 1)))
	}
	slices.Sort(shared)
	return score, shared[:min(len(shared), 8)]
}

// pathFor returns the first pattern of a skill that matches one of the files.
func (d doc) pathFor(files []string) string {
	for _, p := range d.Paths {
		for _, f := range files {
			if globs(p, strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(f, `\`, "/")), "/")) {
				return p
			}
		}
	}
	return ""
}

// globs reports whether a path matches a pattern: "**" stands for any number of
// directories, and a pattern without "/" matches a file anywhere.
func globs(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	return globParts(strings.Split(pattern, "/"), strings.Split(name, "/"), 4096)
}

// globParts compares parts. steps bounds what hostile patterns cost.
func globParts(pattern, name []string, steps int) bool {
	left := steps
	var match func(p, n []string) bool
	match = func(p, n []string) bool {
		if left--; left < 0 {
			return false
		}
		if len(p) == 0 {
			return len(n) == 0
		}
		if p[0] == "**" {
			return match(p[1:], n) || len(n) > 0 && match(p, n[1:])
		}
		if len(n) == 0 {
			return false
		}
		ok, err := path.Match(p[0], n[0])
		return ok && err == nil && match(p[1:], n[1:])
	}
	return match(pattern, name)
}

// mentions reports whether a text names a skill as a word of its own.
func mentions(text, name string) bool {
	text = strings.ToLower(text[:min(len(text), maxTaskText)])
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		before, after := text[:from+i], text[from+i+len(name):]
		if !endsInWord(before) && !beginsWithWord(after) {
			return true
		}
		from += i + 1
	}
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' }

func endsInWord(s string) bool {
	r := []rune(s[max(0, len(s)-4):])
	// A file's ending is no mention: report.pdf does not name the skill pdf.
	return len(r) > 0 && (wordRune(r[len(r)-1]) || r[len(r)-1] == '.')
}

func beginsWithWord(s string) bool {
	for _, r := range s {
		return wordRune(r)
	}
	return false
}

var pathForm = regexp.MustCompile(`[\w.~-]*(?:/[\w.~-]+)+|[\w-]+\.\w{1,8}\b|\bDockerfile\b|\bMakefile\b`)

// pathsIn returns what looks like paths in a text.
func pathsIn(text string) []string {
	return pathForm.FindAllString(text[:min(len(text), maxTaskText)], agent.MaxWorkingFiles)
}

// common are words that say nothing about a task.
var common, commonStems = func() (words, stems map[string]bool) {
	words, stems = map[string]bool{}, map[string]bool{}
	for _, w := range strings.Fields("a about all also an and any are as at be been but by can do does for from had has have how i if in into is it its like make me my need no not of on or our please should so some such task that the their them then there these they this to up us use used user uses using want was we what when where which who will with would you your file help new") {
		words[w] = true
		if len(w) > 3 { // the stem of "notes" is "not", and of "having" that of "have"
			stems[stem(w)] = true
		}
	}
	return words, stems
}()

// wordsOf returns the words of a text, in order.
func wordsOf(text string) (words []string) {
	text = strings.ToLower(text[:min(len(text), maxTaskText)])
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if root := stem(w); len(root) > 1 && !common[w] && !commonStems[root] {
			words = append(words, root)
		}
		if len(words) == maxWords {
			break
		}
	}
	return words
}

// stem drops the commonest English endings, so that "releases" is found by "release".
func stem(w string) string {
	for _, end := range []string{"ing", "ed", "es", "s", "e"} {
		if len(w) > len(end)+2 && strings.HasSuffix(w, end) {
			return strings.TrimSuffix(w, end)
		}
	}
	return w
}
