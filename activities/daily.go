package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Daily keeps this process' part of a task queue's daily limits. A model call begins only
// while something of the part is left, and is charged at its end: a day's limit is exceeded
// by one reply for each call under way at most. Nil bounds nothing.
type Daily struct {
	Limits agent.Daily
	Queue  string // for people
	// Claim asks the account of the task queue.
	Claim func(context.Context, agent.DailyClaim) (agent.DailyGrant, error)

	asking sync.Mutex // held while the account is asked

	mu    sync.Mutex
	day   string
	left  agent.Daily
	calls int         // under way
	idle  *time.Timer // gives back what is left; nil before the first call
}

const (
	// claimWithin bounds one claim. A call that waits for longer is made again later.
	claimWithin = 10 * time.Second
	// giveBackAfter is how long a process keeps its part without a call: others may need it.
	giveBackAfter = time.Minute
	// lookAgain is how long a call waits at most before it looks whether the limit is another.
	lookAgain = 15 * time.Minute
)

// errDaily marks the refusal of a call for which the day's limit has nothing left: it
// counts as no attempt.
var errDaily = errors.New("daily limit")

// enter lets a call begin. The error is [agent.LimitTokens] or [agent.LimitCost] if the
// day's limit is used up, and names the time for another attempt.
func (d *Daily) enter(ctx context.Context) error {
	if d == nil {
		return nil
	}
	d.asking.Lock()
	defer d.asking.Unlock()
	now := time.Now().UTC()
	if d.begins(now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimWithin)
	defer cancel()
	over, err := d.claim(ctx, false)
	if err != nil {
		return &agent.Error{Code: agent.Unreachable, Message: "asking for a part of the daily limits: " + err.Error(), Retryable: true, RetryAfter: time.Minute, Err: errDaily}
	}
	if d.begins(now) {
		return nil
	}
	return d.usedUp(now, over)
}

// begins counts a call if something is left for it.
func (d *Daily) begins(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.day < now.Format(time.DateOnly) || !d.suffices() {
		return false
	}
	d.calls++
	if d.idle != nil {
		d.idle.Stop()
	}
	return true
}

func (d *Daily) suffices() bool {
	return (d.Limits.Tokens == 0 || d.left.Tokens > 0) && (d.Limits.CostUSD == 0 || d.left.CostUSD > 0)
}

// claim asks for a new part, and gives back what is left of the last. It returns which limit
// is used up.
func (d *Daily) claim(ctx context.Context, closing bool) (agent.Code, error) {
	d.mu.Lock()
	c := agent.DailyClaim{Limits: d.Limits, Day: d.day, Left: d.left, Closing: closing}
	d.mu.Unlock()
	grant, err := d.Claim(ctx, c)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// What calls have used meanwhile goes on counting.
	d.left.Tokens += grant.Granted.Tokens - c.Left.Tokens
	d.left.CostUSD += grant.Granted.CostUSD - c.Left.CostUSD
	d.day = grant.Day
	return grant.UsedUp, nil
}

// leave ends a call with what it has used.
func (d *Daily) leave(used agent.Daily) {
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
	if d.idle != nil {
		d.idle.Stop()
	}
	d.idle = time.AfterFunc(giveBackAfter, func() {
		ctx, cancel := context.WithTimeout(context.Background(), claimWithin)
		defer cancel()
		d.GiveBack(ctx)
	})
}

// GiveBack gives back what is left, if no call is under way. Where that fails it is lost for
// the day.
func (d *Daily) GiveBack(ctx context.Context) {
	if d == nil {
		return
	}
	d.asking.Lock()
	defer d.asking.Unlock()
	d.mu.Lock()
	nothing := d.calls > 0 || d.left == agent.Daily{}
	d.mu.Unlock()
	if !nothing {
		_, _ = d.claim(ctx, true) // the next claim says it, if there is one today
	}
}

// usedUp refuses a call until the day ends, or somebody may have raised the limit.
func (d *Daily) usedUp(now time.Time, code agent.Code) error {
	limit := fmt.Sprintf("%d tokens", d.Limits.Tokens)
	if code == agent.LimitCost {
		limit = d.Limits.CostUSD.String() + " USD"
	}
	midnight := now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	return &agent.Error{
		Code: code, Retryable: true, RetryAfter: max(min(midnight.Sub(now), lookAgain), delayFrom+time.Second), Err: errDaily,
		Message: fmt.Sprintf("the daily limit of the task queue %s (%s) is used up; it begins anew at midnight UTC", d.Queue, limit),
	}
}
