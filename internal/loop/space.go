package loop

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// How large a state can become.
//
// A new execution gets the state as JSON in one payload, and the server takes at most 2 MiB.
// maxState leaves an eighteenth of that to a codec. It is the sum of shares, and each part keeps
// to its own share.
//
// What can be read elsewhere is dropped, the oldest first: texts of children that have
// ended, then these children; processed verbs; ids of messages; decided requests. Messages,
// events, requests, calls and conditions wait for somebody and share one space. One that
// does not fit is refused when it comes, so nothing is lost that was accepted.
//
// A size is the most that a value takes in JSON, counted from what the history has recorded.
// It never depends on what an encoder writes. The runtime's own words count as frames: else
// a new wording would refuse something else in a replay.
const (
	maxState = 1936 << 10

	waitShare      = 732 << 10 // what waits for somebody: see space
	childShare     = 208 << 10 // Children
	ledgerShare    = 288 << 10 // Ledger: an account for each of maxWorking
	verbShare      = 136 << 10 // Verbs.Processed and Verbs.UsedTokens
	usedTokenShare = 20 << 10  // Verbs.UsedTokens: maxUsedTokens of 48 bytes
	refuseShare    = 20 << 10  // Verbs.Refused
	fixedShare     = 80 << 10  // parts with few and short values: Holds, Suspensions, Origin, Budget, counts of tools
	specShare      = 96 << 10  // Spec and Parent
	receiptShare   = 112 << 10 // Messages.Receipts
	turnShare      = 64 << 10  // Turn
	alongShare     = 40 << 10  // Log, with a tail that goes along
	pastShare      = 32 << 10  // Requests.Decided and Late
	artifactShare  = 32 << 10  // Artifacts.List, and as much again for Artifacts.Children
	unknownShare   = 16 << 10  // Calls.Unknown
	policyShare    = 48 << 10  // parts of policies that are not counted with the Spec: Recovery, Lessons, Loops, Adaptive, Skills, Watch
)

// decidedShare is the share of Requests.Decided within pastShare.
const decidedShare = pastShare - lateShare - lateNoteShare

// Shares within waitShare. They leave something for a turn's calls, whatever else waits.
const (
	pendingShare = 240 << 10
	eventShare   = 384 << 10
)

// Frames are what a value takes in JSON beside its texts: names of fields, numbers, times.
const (
	messageFrame   = 320
	partFrame      = 48
	fileFrame      = 176 // with the digest
	callFrame      = 700 // with a remark, and that the result is cut
	requestFrame   = 640 // with the run
	childFrame     = 240
	noteFrame      = 160  // of a suspension
	outsideFrame   = 224  // of a [agent.TemporalCall]
	unknownFrame   = 96   // of an [agent.UnknownEffect]
	outcomeFrame   = 1180 // with the usage, that of the tree, and the reason
	verbFrame      = 96
	receiptFrame   = 24
	workspaceFrame = 1200 // of a child's, without its paths
	digestFrame    = 17   // of a verb, a message or an event with an id
	maxMark        = 64   // of a watched file's digest
	lineFrame      = 512
	ownWords       = 1 << 10 // the runtime's words in a message or a result
	maxReason      = 1 << 10
	maxRemark      = 440 // in a callFrame
	maxWhy         = 512 // why a child failed
	maxBy          = 256 * escaped
)

// jsonLen returns how long a text is in JSON at most, without its quotes.
func jsonLen[T ~string](text T) (n int) {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			n += int(asciiJSONLen[c])
			i++
			continue
		}
		long, size := runeJSONLen(string(text[i:]))
		n += long
		i += size
	}
	return n
}

// runeJSONLen returns the length in JSON and in bytes of a text's first character, if it is
// not ASCII. jsonLen looks most characters up in a table, since it runs over all that comes.
func runeJSONLen(text string) (most, size int) {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
		return escaped, size
	}
	return size, size
}

// escaped is the length of a character that is written as \u0000.
const escaped = 6

var asciiJSONLen = func() (w [utf8.RuneSelf]uint8) {
	for c := range w {
		switch {
		case c < ' ', c == '<', c == '>', c == '&', c == 0x7f:
			w[c] = escaped
		case c == '"', c == '\\':
			w[c] = 2
		default:
			w[c] = 1
		}
	}
	return w
}()

// rawJSONLen returns how long a JSON value is within JSON at most, also if it is quoted as a
// text.
func rawJSONLen(raw json.RawMessage) int { return jsonLen(string(raw)) }

func textsJSONLen[T ~string](texts []T) (n int) {
	for _, t := range texts {
		n += jsonLen(t) + len(`"",`)
	}
	return n
}

// bytesWithin returns how many bytes of a text fit into a length in JSON.
func bytesWithin(text string, most int) int {
	// The usual case, without a look at each character.
	if len(text)*escaped <= most {
		return len(text)
	}
	for i, n := 0, 0; i < len(text); {
		long, size := 0, 1
		if c := text[i]; c < utf8.RuneSelf {
			long = int(asciiJSONLen[c])
		} else {
			long, size = runeJSONLen(text[i:])
		}
		if n += long; n > most {
			return i
		}
		i += size
	}
	return len(text)
}

// fit cuts a text so that it takes at most that length in JSON.
func fit[T ~string](text T, most int) T {
	n := bytesWithin(string(text), most)
	if n == len(text) {
		return text
	}
	return T(strings.ToValidUTF8(string(text[:bytesWithin(string(text), most-len("…"))]), "") + "…")
}

// lastWithin returns the last values of a list, as many and as long as may be kept.
func lastWithin[T any](list []T, most, share int, jsonLen func(T) int) []T {
	size := 0
	for i, v := range slices.Backward(list) {
		if size += jsonLen(v); size > share || len(list)-i > most {
			return slices.Clone(list[i+1:])
		}
	}
	return list
}

// space returns how many bytes of JSON may still wait for somebody.
func (s *State) space() int {
	n := waitShare - s.Messages.PendingSize - s.Messages.EmittedSize - s.Park.size() - s.Requests.size() - s.Calls.keptSize() - s.Checks.size() - s.Hooks.size() - s.SuspensionHooks.size() - changesJSONLen(s.Flow.StateChanges) - s.Flow.answersSize()
	// No pending call begins now, so the state keeps their arguments.
	if s.Suspensions.atRest() || s.Phase == RunContinuing {
		n -= s.Calls.pendingSize()
	}
	return n
}

// overlong returns the index of the longest pending call, if the pending calls do not fit in
// the state of a run at rest. Else it returns -1. It never returns a check's call, which would be made
// again: a proposal reserves the space of that.
func (s *State) overlong() int {
	if s.Calls.pendingSize() <= s.space() {
		return -1
	}
	longest := -1
	for i, k := range s.Calls.List {
		if k.State == CallPending && !s.Checks.has(k.ID) && (longest < 0 || k.Size > s.Calls.List[longest].Size) {
			longest = i
		}
	}
	return longest
}

const tooLongToKeep = "the run was held, or had to begin a new history, and keeps no more than it may; ask for the call again, or for shorter ones"

// mayKeep reports whether the state has space for a call and the request that it waits for.
func (s *State) mayKeep(i int, o Request) bool {
	// space has counted the frames of the call already (Call.keptSize).
	return o.Size+s.Calls.List[i].Size-callFrame-ownWords <= s.space()
}

// messageFits reports whether the state has space for a message to the model.
func (s *State) messageFits(m agent.Message) bool { return s.sizeFits(messageJSONLen(m)) }

// sizeFits is messageFits for a message of that length in JSON.
func (s *State) sizeFits(n int) bool {
	return s.Messages.PendingSize+n <= pendingShare && n <= s.space()
}

// resultSpace returns how long the text of a call's result may be. The run may come to rest
// before the turn ends, and then the state keeps the result.
func (s *State) resultSpace(i int) int {
	c := s.Calls.List[i]
	// The runtime's own words always fit.
	return max(ownWords, s.space()+c.keptSize()-callFrame-c.edits())
}

// tooLong returns the error of a start that needs more space in the state than there is; nil
// if it fits.
func (s *step) tooLong() *agent.Error {
	park := s.Origin.Start.Park
	switch n := specJSONLen(withoutTexts(*s.Spec)) + s.Parent.jsonLen(); {
	case n > specShare:
		return agent.Errorf(agent.CodeTooLarge, "what agent %s is made of is too long to be kept: its rules, names of tools, ceilings and schemas have %d bytes with those of the agents above, and may have %d", s.Spec.Name, n, specShare).WithPath("agent")
	case park != nil && conditionsJSONLen(*park) > s.space():
		return agent.Errorf(agent.CodeTooLarge, "start refused: what the run would wait for is too long to be kept").WithPath("park")
	case s.Origin.Start.Carry == agent.CarryCompact && !s.sizeFits(s.Origin.size()):
		return agent.Errorf(agent.CodeTooLarge, "start refused: the input is too long to wait for the summary that comes before it (it may have %d bytes)", pendingShare).WithPath("input")
	}
	return nil
}
