package devserver

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// settings is the server's dynamic configuration: all values that differ from the
// server's defaults, with the reasons. The defaults protect a cluster from its users;
// here there is one user, who waits.
var settings = dynamicconfig.StaticClient{
	// Tests skip time: a week passes in a moment, for one run at a time.
	dynamicconfig.WorkflowTimeSkippingEnabled.Key(): true,

	// By default, a queue's reader may look for new tasks 20 times a second. So every step of a run
	// (an activity scheduled, a child started, a timer fired) waits up to 50 ms. This is the
	// largest single gain: a turn of a model and a tool call falls from 69 to 12 ms. The host's own
	// limit, in addition to the shard's, is derived from the persistence QPS below when it is 0.
	dynamicconfig.TransferProcessorMaxPollRPS.Key():   pollRPS,
	dynamicconfig.TimerProcessorMaxPollRPS.Key():      pollRPS,
	dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): pollRPS,
	dynamicconfig.OutboundProcessorMaxPollRPS.Key():   pollRPS,

	dynamicconfig.TransferProcessorMaxPollHostRPS.Key():   pollRPS,
	dynamicconfig.TimerProcessorMaxPollHostRPS.Key():      pollRPS,
	dynamicconfig.VisibilityProcessorMaxPollHostRPS.Key(): pollRPS,
	dynamicconfig.OutboundProcessorMaxPollHostRPS.Key():   pollRPS,

	// Pushed cancellations leave through the outbound queue, 100 a second by
	// default: an interrupt of a tree of some hundred runs would wait for it.
	dynamicconfig.OutboundQueueHostSchedulerMaxTaskRPS.Key(): float64(pollRPS),

	// About one short run in a hundred closes without an answer to the
	// waiting client; the client asks again when its long poll expires, by default after 20s.
	dynamicconfig.HistoryLongPollExpirationInterval.Key(): time.Second,

	// A workflow that is deleted stays until these queues have written down how far
	// they are, which they do every 30 s by default.
	dynamicconfig.TransferProcessorUpdateAckInterval.Key():   time.Second,
	dynamicconfig.VisibilityProcessorUpdateAckInterval.Key(): time.Second,

	// With both, a running activity's context is cancelled some 10 ms after its
	// workflow asked, without heartbeats. The first lets DescribeNamespace show
	// the capability, by which workers open the task queue that commands come by.
	dynamicconfig.WorkerCommandsEnabled.Key():             true,
	dynamicconfig.EnableCancelActivityWorkerCommand.Key(): true,

	// With 10, the default, fifty concurrent resumes of one run mostly time out.
	dynamicconfig.WorkflowExecutionMaxInFlightUpdates.Key(): 1000,

	// With 20 MB, the default, a few updates of 1 MB come with one workflow task,
	// whose answer repeats them: for one over 4 MB the server terminates the run.
	dynamicconfig.WorkflowExecutionMaxInFlightUpdatePayloads.Key(): 2 << 20,

	// Timers are rounded up to this, a second by default.
	dynamicconfig.TimerProcessorMaxTimeShift.Key(): time.Millisecond,

	// A run that continues as new, or starts again, within this of its start
	// waits out the rest; a second by default.
	dynamicconfig.WorkflowIdReuseMinimalInterval.Key(): time.Duration(0),

	// An activity's first task returns with the workflow task's completion to the worker
	// that asked for it. These are the server's defaults. They are set here because the
	// times above depend on them.
	dynamicconfig.EnableActivityEagerExecution.Key(): true,
	dynamicconfig.EnableEagerWorkflowStart.Key():     true,

	// A search attribute is usable one second after it was added, instead of ten. The
	// server could read them at each use. But then every start and every change of a run
	// would wait for two reads of the database.
	dynamicconfig.NamespaceCacheRefreshInterval.Key(): time.Second,

	// One partition for a task queue instead of four: with one host the other
	// three only forward to the first, after having been loaded from the database.
	dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
	dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

	// Runs of many tenants share a queue by their fairness keys.
	dynamicconfig.MatchingEnableFairness.Key(): true,

	// Rate limits that a test with many workers, a listing in a loop or a fan-out
	// of some hundred children would meet. SQLite is the limit here, and it says
	// so by being slow, not by refusing.
	dynamicconfig.FrontendRPS.Key():                                                        unlimited,
	dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                                 unlimited,
	dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():                       unlimited,
	dynamicconfig.FrontendNamespaceReplicationInducingAPIsRPS.Key():                        unlimited,
	dynamicconfig.FrontendMaxNamespaceNamespaceReplicationInducingAPIsRPSPerInstance.Key(): unlimited,
	dynamicconfig.FrontendGlobalNamespaceNamespaceReplicationInducingAPIsRPS.Key():         unlimited,
	dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key():                unlimited,
	dynamicconfig.FrontendPersistenceMaxQPS.Key():                                          unlimited,
	dynamicconfig.HistoryRPS.Key():                                                         unlimited,
	dynamicconfig.HistoryPersistenceMaxQPS.Key():                                           unlimited,
	dynamicconfig.MatchingRPS.Key():                                                        unlimited,
	dynamicconfig.MatchingPersistenceMaxQPS.Key():                                          unlimited,
	dynamicconfig.WorkerPersistenceMaxQPS.Key():                                            unlimited,
	dynamicconfig.AdminMatchingNamespaceTaskqueueToPartitionDispatchRate.Key():             float64(unlimited),

	// Goroutines that wait for tasks, 512 a queue by default. One database
	// connection keeps fewer than these busy, and the rest only bury the
	// interesting ones when a test that hangs dumps its goroutines. Nothing is
	// replicated.
	dynamicconfig.TransferProcessorSchedulerWorkerCount.Key():               queueWorkers,
	dynamicconfig.TimerProcessorSchedulerWorkerCount.Key():                  queueWorkers,
	dynamicconfig.VisibilityProcessorSchedulerWorkerCount.Key():             queueWorkers,
	dynamicconfig.ReplicationProcessorSchedulerWorkerCount.Key():            1,
	dynamicconfig.ReplicationLowPriorityProcessorSchedulerWorkerCount.Key(): 1,

	// Runs that the server keeps in memory. The default, 128,000, is sized for a
	// host of a cluster; this is far more than live at once on a laptop.
	dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 8192,

	// A parent that closes ends its children itself, however many there are. Otherwise
	// the server leaves ten or more of them to a system worker, which it starts and never
	// stops. That worker's polls would delay every Stop by a second, and continue for the
	// life of the process.
	dynamicconfig.EnableParentClosePolicyWorker.Key(): false,

	// With Options.Nexus there is an HTTP port, and with it the server's HTTP API. Any page in a
	// browser on this machine could call that. No host name is allowed, so only Nexus is left.
	dynamicconfig.FrontendHTTPAllowedHosts.Key(): []string{},

	// Quiet: nothing is asked of the internet, and the sweeps for a cluster's
	// leftovers, with their workers, do not run.
	dynamicconfig.EnableServerVersionCheck.Key(): false,
	dynamicconfig.TaskQueueScannerEnabled.Key():  false,
	dynamicconfig.HistoryScannerEnabled.Key():    false,
}

const (
	pollRPS = 5000

	queueWorkers = 64

	// unlimited is practically no limit. It is small enough that bursts, which the server
	// computes as multiples of a rate, still fit into an int.
	unlimited = 1_000_000
)
