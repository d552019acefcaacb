package loop

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// How large a state can become.
//
// A new execution gets the state as JSON in one payload, of which the server takes 2 MiB.
// maxState leaves a tenth of that to a codec. It is the sum of shares: each
// part keeps to its own, whatever comes. What can be read elsewhere is shed, the oldest
// first: texts of children that have ended, then these children; verbs that were processed;
// ids of messages; requests that were decided. What waits for somebody shares one space: of
// messages, events, requests, calls and conditions, what does not fit is refused when it
// comes, and nothing that was taken is lost.
//
// A size is what a value takes in JSON at most, counted from what histories have recorded.
// What an encoder really writes decides nothing, and the runtime's own words count as
// frames: to reword one must not move what is refused in a history that is replayed.
const (
	maxState = 1840 << 10

	waitShare      = 732 << 10 // what waits for somebody: see space
	childShare     = 208 << 10 // Children
	ledgerShare    = 324 << 10 // Ledger: an account for each of maxWorking
	verbShare      = 136 << 10 // Verbs.Processed and Spent
	usedTokenShare = 20 << 10  // Spent: maxSpent of 48 bytes
	refuseShare    = 16 << 10  // Verbs.Refused
	fixedShare     = 80 << 10  // what has few and short values: Holds, Rest, Origin, Budget, counts of tools
	specShare      = 96 << 10  // Spec and Parent
	receiptShare   = 112 << 10 // Messages.Posts
	turnShare      = 64 << 10  // Turn
	alongShare     = 40 << 10  // Log, without what is sealed
	pastShare      = 32 << 10  // Requests.Decided
)

// Shares within waitShare: something is left for a turn's calls, whatever else waits.
const (
	pendingShare = 240 << 10
	eventShare   = 384 << 10
)

// Frames are what a value takes beside its texts: names of fields, numbers, times.
const (
	messageFrame = 320
	partFrame    = 48
	callFrame    = 700 // with a remark, and that the result is cut
	requestFrame = 640 // with the run
	childFrame   = 240
	noteFrame    = 160  // of a suspension
	outcomeFrame = 1180 // with the usage, that of the tree, and the reason
	verbFrame    = 96
	receiptFrame = 24
	digestFrame  = 17 // of a verb, a message or an event with an id
	lineFrame    = 512
	ownWords     = 1 << 10 // of the runtime, in a message or a result
	maxReason    = 1 << 10
	maxWhy       = 512 // why a child failed
	maxBy        = 256 * escaped
)

// jsonLen is how long a text is in JSON at most, without its quotes.
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

// runeJSONLen is the length of a text's first character in JSON, and in bytes, if it is not
// ASCII: nearly all is, and is looked up in a loop of its own.
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

// rawJSONLen is how long a JSON value is within JSON at most, also as a text.
func rawJSONLen(raw json.RawMessage) int { return jsonLen(string(raw)) }

func textsJSONLen[T ~string](texts []T) (n int) {
	for _, t := range texts {
		n += jsonLen(t) + len(`"",`)
	}
	return n
}

// bytesWithin is how many bytes of a text are no longer in JSON than most.
func bytesWithin(text string, most int) int {
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

// fit is the beginning of a text that is no longer in JSON than most.
func fit[T ~string](text T, most int) T {
	n := bytesWithin(string(text), most)
	if n == len(text) {
		return text
	}
	return T(strings.ToValidUTF8(string(text[:bytesWithin(string(text), most-len("…"))]), "") + "…")
}

// space is how much more may wait for somebody.
func (s *State) space() int {
	n := waitShare - s.Messages.PendingSize - s.Messages.EventSize - s.Park.size() - s.Requests.size() - s.Calls.keptSize()
	if s.Suspensions.atRest() || s.Phase == RunContinuing {
		n -= s.Calls.pendingSize()
	}
	return n
}

// overlong is the place of the longest of the calls that a hold, or a history without room,
// keeps from being made, if all of them are longer than what a run that rests may keep; -1 if
// they are not.
func (s *State) overlong() int {
	if s.Calls.pendingSize() <= s.space() {
		return -1
	}
	longest := -1
	for i, k := range s.Calls.List {
		if k.State == CallPending && (longest < 0 || k.Size > s.Calls.List[longest].Size) {
			longest = i
		}
	}
	return longest
}

const tooLongToKeep = "the run was held, or had to begin a new history, and keeps no more than it may; ask for the call again, or for shorter ones"

// mayKeep reports whether a call can be kept with what people are asked about it.
func (s *State) mayKeep(i int, o Request) bool {
	return o.Size+s.Calls.List[i].Size-callFrame-ownWords <= s.space()
}

// messageFits reports whether a message can wait for the model.
func (s *State) messageFits(m agent.Message) bool { return s.sizeFits(messageJSONLen(m)) }

// sizeFits reports whether a message of a length in JSON can.
func (s *State) sizeFits(n int) bool {
	return s.Messages.PendingSize+n <= pendingShare && n <= s.space()
}

// resultSpace is how long the text of a call's result may be: a hold may let the run rest
// before the turn ends.
func (s *State) resultSpace(i int) int {
	c := s.Calls.List[i]
	return max(ownWords, s.space()+c.keptSize()-callFrame-c.edits())
}
