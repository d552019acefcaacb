package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// DailyBudget keeps this process' part of a task queue's daily limits. A model call begins only
// while something of the part is left, and is charged at its end: a day's limit is exceeded
// by one reply for each call under way at most. Nil bounds nothing.
type DailyBudget struct {
	Limits agent.DailyLimits
	Queue  string // for people
	// Logger hears once a day that a limit is used up; nil means nobody.
	Logger *slog.Logger
	// Claim asks the account of the task queue.
	Claim func(context.Context, wire.DailyClaim) (wire.DailyGrant, error)

	once    sync.Once
	turns   chan struct{}    // who has sent to it asks the account
	pending *wire.DailyClaim // what the account was asked, and whose answer has not come
	failed  failedClaim      // the last claim that failed; both are of who has the turn

	mu          sync.Mutex
	asked       string      // when the part was claimed: the day by this process' clock
	day         string      // of the part, by the account's
	over        usedUpLimit // what the account has said last
	told        usedUpLimit // what was logged last
	left        agent.DailyLimits
	calls       int         // under way
	returnTimer *time.Timer // gives back what is left; nil before the first call
}

// failedClaim is why a claim failed, and when: whoever waited for its turn meanwhile need
// not try again.
type failedClaim struct {
	err error
	at  time.Time
}

// usedUpLimit is the limit that was used up on a day, when that was last asked.
type usedUpLimit struct {
	code agent.Code
	day  string
	at   time.Time
}

const (
	// claimTimeout bounds one claim. A call that waits for longer is made again later.
	claimTimeout = 10 * time.Second
	// returnAfter is how long a process keeps its part without a call: others may need it.
	returnAfter = time.Minute
	// believedFor is how long a process believes that a limit is used up: thousands of calls may
	// wait for it, and the account is one workflow.
	believedFor = time.Minute
	// maxDailyWait is how long a call waits at most before it looks whether the limit is another.
	maxDailyWait = 15 * time.Minute
)

// errDaily marks the refusal of a call for which the day's limit has nothing left: it
// counts as no attempt.
var errDaily = errors.New("daily limit")

// begin lets a call begin. The error is [agent.CodeLimitTokens] or [agent.CodeLimitCost] if the
// day's limit is used up, and names the time for another attempt.
func (d *DailyBudget) begin(ctx context.Context) error {
	if d == nil || d.begins(time.Now().UTC()) {
		return nil
	}
	came := time.Now()
	if !d.takeTurn(ctx) {
		return notAsked(ctx.Err())
	}
	defer d.endTurn()
	for {
		now := time.Now().UTC()
		if d.begins(now) {
			return nil
		}
		if code := d.usedUpAt(now); code != "" {
			return d.usedUp(now, code)
		}
		if d.failed.err != nil && d.failed.at.After(came) { // it was asked while this call waited
			return notAsked(d.failed.err)
		}
		if err := d.ask(ctx, now); err != nil {
			return notAsked(err)
		}
	}
}

// ask claims another part for a call.
func (d *DailyBudget) ask(ctx context.Context, now time.Time) error {
	within, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	err := d.claim(within, now, false)
	if ctx.Err() == nil { // else it was the call that was given up
		d.failed = failedClaim{err, time.Now()}
	}
	return err
}

func notAsked(err error) error {
	return &agent.Error{Code: agent.CodeUnreachable, Message: "asking for a part of the daily limits: " + err.Error(), Retryable: true, RetryAfter: time.Minute, Err: errDaily}
}

// takeTurn waits until nobody else asks the account. It reports whether that was before the
// context ended.
func (d *DailyBudget) takeTurn(ctx context.Context) bool {
	d.once.Do(func() { d.turns = make(chan struct{}, 1) })
	select {
	case d.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *DailyBudget) endTurn() { <-d.turns }

// usedUpAt is the limit that is known to be used up; empty if none is, or it is time to ask.
func (d *DailyBudget) usedUpAt(now time.Time) agent.Code {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over.day != now.Format(time.DateOnly) || now.Sub(d.over.at) > believedFor {
		return ""
	}
	return d.over.code
}

// begins counts a call if something is left for it.
func (d *DailyBudget) begins(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked < now.Format(time.DateOnly) || !d.suffices() {
		return false
	}
	d.calls++
	if d.returnTimer != nil {
		d.returnTimer.Stop()
	}
	return true
}

func (d *DailyBudget) suffices() bool {
	return (d.Limits.Tokens == 0 || d.left.Tokens > 0) && (d.Limits.CostUSD == 0 || d.left.CostUSD > 0)
}

// claim asks for a new part, and gives back what is left of the last. What was asked before
// and not answered is asked again, and nothing else: the account may have done it.
func (d *DailyBudget) claim(ctx context.Context, now time.Time, closing bool) error {
	if d.pending == nil {
		d.mu.Lock()
		d.pending = &wire.DailyClaim{ID: rand.Text(), Limits: d.Limits, Day: d.day, Remaining: d.left, Closing: closing}
		d.mu.Unlock()
	}
	c := *d.pending
	grant, err := d.Claim(ctx, c)
	if err == nil || errors.Is(err, agent.CodeInvalidInput) { // that is refused before anything changes
		d.pending = nil
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// What calls have used meanwhile goes on counting.
	d.left.Tokens += grant.Granted.Tokens - c.Remaining.Tokens
	d.left.CostUSD += grant.Granted.CostUSD - c.Remaining.CostUSD
	// The account's clock may be another: its part is good for this process' day.
	d.day, d.asked = grant.Day, now.Format(time.DateOnly)
	d.over = usedUpLimit{grant.UsedUp, d.asked, now}
	d.tell()
	return nil
}

// tell logs that a limit is used up, once a day for each.
func (d *DailyBudget) tell() {
	if d.over.code == "" || d.Logger == nil || d.over.code == d.told.code && d.over.day == d.told.day {
		return
	}
	d.told = d.over
	d.Logger.Warn("a daily limit is used up: model calls wait until the new day begins, or somebody raises the limit",
		"task_queue", d.Queue, "limit", d.limit(d.over.code), "code", string(d.over.code), "begins", midnightAfter(d.over.at))
}

// end ends a call with what it has used.
func (d *DailyBudget) end(used agent.DailyLimits) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left.Tokens -= used.Tokens
	d.left.CostUSD -= used.CostUSD
	if d.calls--; d.calls > 0 {
		return
	}
	if d.returnTimer != nil {
		d.returnTimer.Stop()
	}
	d.returnTimer = time.AfterFunc(returnAfter, func() {
		ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
		defer cancel()
		d.GiveBack(ctx)
	})
}

// GiveBack gives back what is left, if no call is under way. Where that fails it is given
// back with the next claim, and lost for the day if there is none.
func (d *DailyBudget) GiveBack(ctx context.Context) {
	if d == nil || !d.takeTurn(ctx) {
		return
	}
	defer d.endTurn()
	for d.hasToGive() {
		if err := d.claim(ctx, time.Now().UTC(), true); err != nil {
			return
		}
	}
}

func (d *DailyBudget) hasToGive() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls == 0 && (d.pending != nil || d.left != agent.DailyLimits{})
}

// usedUp refuses a call until the day ends, or somebody may have raised the limit.
func (d *DailyBudget) usedUp(now time.Time, code agent.Code) error {
	return &agent.Error{
		Code: code, Retryable: true, RetryAfter: max(min(midnightAfter(now).Sub(now), maxDailyWait), delayFrom+time.Second), Err: errDaily,
		Message: fmt.Sprintf("the daily limit of the task queue %s (%s) is used up; it begins anew at midnight UTC", d.Queue, d.limit(code)),
	}
}

// limit is the limit of a code, for people.
func (d *DailyBudget) limit(code agent.Code) string {
	if code == agent.CodeLimitCost {
		return d.Limits.CostUSD.String() + " USD"
	}
	return fmt.Sprintf("%d tokens", d.Limits.Tokens)
}

// midnightAfter is when the day of a time ends, in UTC.
func midnightAfter(t time.Time) time.Time {
	return t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
}
