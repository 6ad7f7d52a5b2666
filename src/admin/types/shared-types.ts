import type { BoundedCount } from '../../runtime/inspection/application.ts';
import type { AdminContext } from './builder.ts';
import { builder } from './builder.ts';

export const Right = builder.enumType('Right', {
  description: 'What a token may do. Every action names the right that it needs.',
  values: {
    READ: { value: 'read', description: 'See everything except what `DATA` shows.' },
    DATA: {
      value: 'data',
      description: 'See payloads of events and rows of read tables. They may hold personal data.',
    },
    VERIFY: { value: 'verify', description: 'Run verifications and diffs, which are heavy reads.' },
    ACTIVATE: { value: 'activate' },
    ROLLBACK: { value: 'rollback' },
    REBUILD: { value: 'rebuild' },
    RETIRE: { value: 'retire' },
    PAUSE: { value: 'pause' },
    SNAPSHOT: { value: 'snapshot' },
    CANARY: { value: 'canary' },
    SHADOW: { value: 'shadow' },
    RETRY_DEAD_LETTERS: { value: 'retryDeadLetters' },
    DISCARD_DEAD_LETTERS: { value: 'discardDeadLetters' },
    REACTORS: { value: 'reactors' },
  } as const,
});

export const Health = builder.enumType('Health', {
  description: 'Whether a version needs attention, the worst first.',
  values: {
    UNCHECKED: { value: 'unchecked', description: 'Nothing checks its unique values, so appends are refused.' },
    STOPPED: { value: 'stopped', description: 'Its processor has stopped at an error, or the version has failed.' },
    UNOWNED: { value: 'unowned', description: 'No process maintains it.' },
    STALLED: { value: 'stalled', description: 'It is behind, and does not move.' },
    HELD: { value: 'held', description: 'It is ready, and something keeps it from answering.' },
    PAUSED: { value: 'paused' },
    BUILDING: { value: 'building', description: 'It is being built.' },
    BEHIND: { value: 'behind', description: 'It is behind, and moves.' },
    CURRENT: { value: 'current' },
    RETIRED: { value: 'retired' },
  } as const,
});

export const VersionState = builder.enumType('VersionState', {
  values: {
    BUILDING: { value: 'building' },
    READY: { value: 'ready' },
    ACTIVE: { value: 'active' },
    RETIRED: { value: 'retired' },
    FAILED: { value: 'failed' },
  } as const,
});

export const Criticality = builder.enumType('Criticality', {
  values: {
    BREAKING: { value: 'breaking' },
    DANGEROUS: { value: 'dangerous' },
    SAFE: { value: 'safe' },
  } as const,
});

export const StepOutcome = builder.enumType('StepOutcome', {
  values: {
    FOLDED: { value: 'folded', description: 'The event was folded.' },
    IGNORED: { value: 'ignored', description: 'The version does not handle events of this type.' },
    FAILED: { value: 'failed', description: '`evolve` fails at this event with the code of this process.' },
    LEFT_OUT: {
      value: 'left-out',
      description: 'The table leaves the event out: a dead letter, skipped or discarded.',
    },
  } as const,
});

export const EventOrder = builder.enumType('EventOrder', {
  values: {
    OLDEST_FIRST: { value: 'oldest-first' },
    NEWEST_FIRST: { value: 'newest-first' },
  } as const,
});

export const DeadLetterGrouping = builder.enumType('DeadLetterGrouping', {
  values: {
    ERROR: { value: 'error', description: 'The message, without the position and the stream of the event.' },
    STACK: { value: 'stack', description: 'Where the error was thrown.' },
    EVENT: { value: 'event' },
    STREAM: { value: 'stream' },
    OF: { value: 'of' },
  } as const,
});

export const ActionName = builder.enumType('ActionName', {
  values: {
    ACTIVATE: { value: 'activate' },
    ROLLBACK: { value: 'rollback' },
    RETIRE: { value: 'retire' },
    REBUILD: { value: 'rebuild' },
    CANCEL_REBUILD: { value: 'cancelRebuild' },
    ACCEPT_REBUILD: { value: 'acceptRebuild' },
    PAUSE: { value: 'pause' },
    RESUME: { value: 'resume' },
    TAKE_SNAPSHOT: { value: 'takeSnapshot' },
    RESTORE_SNAPSHOT: { value: 'restoreSnapshot' },
    DROP_SNAPSHOT: { value: 'dropSnapshot' },
    START_CANARY: { value: 'startCanary' },
    END_CANARY: { value: 'endCanary' },
    START_SHADOW: { value: 'startShadow' },
    STOP_SHADOW: { value: 'stopShadow' },
    RETRY_DEAD_LETTERS: { value: 'retryDeadLetters' },
    DISCARD_DEAD_LETTERS: { value: 'discardDeadLetters' },
    RECALL_DISCARDS: { value: 'recallDiscards' },
    PAUSE_REACTOR: { value: 'pauseReactor' },
    RESUME_REACTOR: { value: 'resumeReactor' },
    REWIND_REACTOR: { value: 'rewindReactor' },
    SKIP_REACTOR: { value: 'skipReactor' },
    CANCEL_WAITING_EVENT: { value: 'cancelWaitingEvent' },
    WITHDRAW_REACTOR_VERSION: { value: 'withdrawReactorVersion' },
    FORGET_REACTOR: { value: 'forgetReactor' },
  } as const,
});

/** The description of the field of that name, which each list over all read stores has. */
export const storesAway = 'The read stores that do not respond: what they have is missing here.';

export const Count = builder.objectRef<BoundedCount>('Count');
Count.implement({
  description: 'A count that ends at a bound.',
  fields: (t) => ({
    value: t.expose('value', { type: 'Int' }),
    isExact: t.expose('isExact', { type: 'Boolean', description: 'False: there are more than `value`.' }),
  }),
});

export const ProcessorError = builder.objectRef<{
  readonly message: string;
  readonly at: string;
  readonly code?: string | undefined;
}>('ProcessorError');
ProcessorError.implement({
  fields: (t) => ({
    message: t.expose('message', { type: 'String' }),
    at: t.expose('at', { type: 'DateTime' }),
    code: t.field({ type: 'String', nullable: true, resolve: ({ code }) => code ?? null }),
  }),
});

export const Caller = builder.objectRef<AdminContext['caller']>('Caller');
Caller.implement({
  fields: (t) => ({
    name: t.expose('name', { type: 'String', description: 'The name of the token, which the audit log records.' }),
    rights: t.field({ type: [Right], resolve: ({ rights }) => [...rights] }),
    process: t.field({
      type: 'String',
      description: 'The process that answers, such as `web-1:4711`.',
      resolve: (_, _args, { services }) => services.process,
    }),
  }),
});
