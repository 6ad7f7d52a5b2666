/** An error code on the page docs/errors.md, which `npm run codegen` generates. */
export interface ErrorCode extends Readonly<Record<'what' | 'why' | 'do', string>> {
  /** The HTTP status of a response without data. Null: clients never see the code. */
  readonly status: string | null;
}

const ofField = '200';

/** Every code of a RefoldError. A code that is not described here does not compile. */
export const refoldCodes = {
  BAD_USER_INPUT: {
    status: '400; 200 if a field refuses',
    what: 'A value is not valid. For a command, `issues` lists each problem with its path.',
    why: 'The value does not match its type, its schema, or what a column can hold.',
    do: 'Show the issues to the user, or fix the program.',
  },
  COMMAND_REJECTED: {
    status: ofField,
    what: 'A business rule rejected the command: `reason`, `details`. Nothing was written.',
    why: '`decide` threw `CommandRejected`, or a unique value is already taken.',
    do: 'Show the reason to the user.',
  },
  CONCURRENCY_CONFLICT: {
    status: ofField,
    what: 'The stream is not at the expected version: `expected`, `actual`. Nothing was written.',
    why: 'Another writer appended to the stream after it was read.',
    do: 'Read again and decide again.',
  },
  STREAM_LOCKED: {
    status: ofField,
    what: 'Another writer holds the stream: `waitedMs`, `retriable`. Nothing was written.',
    why: 'A transaction of another writer stayed open for longer than the lock timeout.',
    do: 'Send it again. If it persists, look for the session with `pg_blocking_pids()`.',
  },
  UNIQUE_CHECK_UNAVAILABLE: {
    status: ofField,
    what: 'Unique values of an inline read model can not be checked at the moment: `waitedMs`, `retriable`. Nothing was written.',
    why: 'The read model is being built or repaired, is paused or has stopped; the row waits for a dead letter; or the writer does not declare it. `types` names the events.',
    do: 'Send it again. Operators: `refold status` says what the read model waits for.',
  },
  TEXT_TOO_LONG: {
    status: ofField,
    what: 'A text is too long for an indexed column of a read model: `column`, `bytes`, `maxBytes`. Nothing was written.',
    why: 'The input of the command has no limit, or one above the limit of the column.',
    do: 'Send a shorter text. Developers: validate the input with `columnLimits`, or declare the column with `.index({ long: true })`.',
  },
  POSITION_TIMEOUT: {
    status: ofField,
    what: 'The read model did not reach the demanded position in time: `reached`. `stopped` means that it needs an operator.',
    why: 'The read model lags, or has stopped.',
    do: 'Ask again, or without the position. Operators: see `refold status`.',
  },
  ROW_HELD: {
    status: ofField,
    what: 'A row does not include the demanded position, and the request has `refold-held: refuse`: `projection`, `key`, `position`, `reason`.',
    why: 'An event of the row is a dead letter, or was skipped.',
    do: 'Ask without the header to get the row as it is. Operators: `refold dead-letters list`.',
  },
  HISTORY_CHANGED: {
    status: ofField,
    what: 'The database lost events, and the demanded position belongs to one of them: `position`.',
    why: 'A fail-over lost events, or the database was restored from a backup.',
    do: 'Discard what was read and the position; read again. Operators: see the page on fail-over.',
  },
  PROJECTION_NOT_READY: {
    status: ofField,
    what: 'No version of the read model can answer: `progress` while a first version is building.',
    why: "The first version is building or became active a moment ago, or its table can't be read.",
    do: 'Ask again later.',
  },
  PROJECTION_SWITCHED: {
    status: ofField,
    what: "A subscription can't continue with the version that is active now: `from`, `to`, `columns`.",
    why: 'The new version lacks a selected column, or has other access rules.',
    do: 'Subscribe again.',
  },
  QUERY_TOO_COMPLEX: {
    status: '400; 200 if a field refuses',
    what: 'The operation is too deep, too long or too expensive, or could return too many rows.',
    why: 'A limit of the gateway.',
    do: 'Ask for less. Operators: see the limits on the security page.',
  },
  ANSWER_TOO_LARGE: {
    status: ofField,
    what: 'The rows of the answer have too many bytes.',
    why: 'They exceed `gateway.maxAnswerSize`.',
    do: 'Ask for fewer rows, or without the large fields. Operators: see the limits on the security page.',
  },
  UNAUTHENTICATED: {
    status: '401; 200 if a field refuses',
    what: 'The token is not valid, or a token is required.',
    why: 'The token is missing, wrong or expired.',
    do: 'Get a new token.',
  },
  AUTHENTICATION_UNAVAILABLE: {
    status: '503',
    what: "The server can't check tokens at the moment. Nothing was done.",
    why: "The keys can't be fetched. The log names the problem.",
    do: 'Try again after `retry-after`, with the same token.',
  },
  FORBIDDEN: {
    status: '403; 200 if a field refuses',
    what: 'The viewer may not do this, or a page of another site could have sent the request.',
    why: 'An access rule, or the protection against cross-site requests.',
    do: "Don't try again.",
  },
  DATABASE_UNAVAILABLE: {
    status: '503',
    what: "The database can't be reached, accepts no writes, or refuses a statement for a missing privilege or damaged data. Nothing was done.",
    why: 'The server, the network or the disk failed, a fail-over is under way, or a privilege was revoked.',
    do: 'Send it again after a pause.',
  },
  PAYLOAD_VERSION_UNKNOWN: {
    status: '503',
    what: 'An event has a newer payload version than this process knows: `type`, `payloadVersion`, `known`, `position`. Nothing was done.',
    why: 'A newer release is being deployed, and its processes have written events already.',
    do: 'Send it again after a pause. Operators: deploy the newer release to all processes.',
  },
  OUTCOME_UNKNOWN: {
    status: '503',
    what: 'The response of the database was lost. The command may have been written.',
    why: 'The connection broke after the append was sent, or the process stopped meanwhile.',
    do: 'Send it again with the same `idempotencyKey`. Without one, read first whether it was written.',
  },
  INVALID_DECLARATION: {
    status: null,
    what: "A declaration of events, a projection, a command or a reactor can't work. Nothing was started.",
    why: 'Declarations are checked before anything connects.',
    do: 'Fix the declaration; the message names it and the way out.',
  },
  INVALID_CONFIG: {
    status: null,
    what: 'An option, or an argument of the command line, is not valid.',
    why: 'Options are checked before anything connects.',
    do: 'Fix the option; the message names it.',
  },
  UNKNOWN_EVENT_TYPE: {
    status: null,
    what: 'An event has a type that its family does not define, or that a command does not emit.',
    why: 'A wrong name, or events of a newer release.',
    do: 'Fix the name, define the type, or deploy the release that defines it.',
  },
  INVALID_DECISION: {
    status: null,
    what: "A command's `stream`, `streams` or `decide` returned something that it can't return. Nothing was written.",
    why: 'It returned nothing, a promise, something that is no event, or lists that do not fit the streams.',
    do: 'Fix the command; the message names it and what it returned.',
  },
  INVALID_PAYLOAD: {
    status: null,
    what: 'A payload does not match the schema of its event: `issues`. Nothing was written.',
    why: '`decide` or an append made a payload that the family does not allow.',
    do: 'Fix the code that made it.',
  },
  INVALID_ROW: {
    status: null,
    what: "`evolve` returned a row that its table can't hold.",
    why: 'A value is missing, has the wrong type, or is too large for its column.',
    do: 'Fix `evolve`, or validate the value in the command with `columnLimits`.',
  },
  INVALID_STATE: {
    status: null,
    what: "The state of a stream can't be kept as a snapshot. Commands continue without it.",
    why: 'JSON would change the state.',
    do: 'Give `defineState` `encode` and `decode`, or keep another value in the state.',
  },
  EVOLVE_FAILED: {
    status: null,
    what: 'A projection could not fold an event. It stops there, or keeps the event as a dead letter.',
    why: '`evolve` or an upcaster threw, `evolve` returned an invalid row, or a constraint of the table refused the row.',
    do: 'Fix `evolve` and deploy. For dead letters, run `refold dead-letters retry` then.',
  },
  UPCAST_FAILED: {
    status: null,
    what: "An upcaster failed, so the payload of an event can't be read: `type`, `payloadVersion`, `position`, `streamId`.",
    why: 'The upcaster threw, or returned a promise. A projection reports it as `EVOLVE_FAILED` and applies its `onError`.',
    do: 'Fix the upcaster and deploy. `refold verify --payloads` finds all such events.',
  },
  REACTION_FAILED: {
    status: null,
    what: 'A reactor could not handle an event and stopped there.',
    why: 'Its handler failed after all retries, or returned `stop`.',
    do: 'Fix the cause, then run `refold reactor resume`.',
  },
  REACTOR_VERSION_UNKNOWN: {
    status: null,
    what: 'A version of a reactor that no running process declares handles the next events: `reactor`, `version`. The reactor stopped before them.',
    why: 'The version was removed while its events were under way, or a newer release was taken back.',
    do: 'Deploy a process that declares the version: the reactor continues by itself. Or run `refold reactor withdraw`; the message says when.',
  },
  REACTION_LOOP: {
    status: null,
    what: 'Too many reactions of one reactor, each caused by the one before it, led to an event: `reactor`, `reactions`. It was not handled.',
    why: 'The reactor writes events that it handles, or two reactors write events for each other.',
    do: 'Fix the handler, then skip the event (`refold reactor skip`, `refold dead-letters discard`). Or raise `maxChain` if the chain is meant to be so long.',
  },
  PROCESS_ENDED: {
    status: null,
    what: 'The process ended during each attempt to handle an event: `times`. It is not handled any more.',
    why: 'The handler ended it, used up its memory, or the process was killed several times.',
    do: 'Fix the cause, then run `refold reactor resume` or `refold dead-letters retry`. A retry rule may name this code.',
  },
  STEP_CHANGED: {
    status: null,
    what: "A workflow's step has an outcome of another input: `reactor`, `streamId`, `position`, `step`, `command`, `storedCommand`. Nothing was executed.",
    why: 'The code changed while the event was under way, or the input depends on a clock, on chance or on data that changes.',
    do: 'Restore the input, or name the new step differently; then handle the event again.',
  },
  INVALID_STEP: {
    status: null,
    what: 'A step does not run: it has no name although its command is executed more than once, its name is empty or used twice, the reactor does not declare its command or the awaited event type, or two waits were begun at once: `reactor`, `streamId`, `position`.',
    why: 'The outcomes of steps are stored under their names.',
    do: "Do what the message says, such as to name each execution: `execute(charge, input, { step: 'deposit' })`; then handle the event again.",
  },
  HOOK_FAILED: {
    status: null,
    what: '`setUp` or `tearDown` of a table failed.',
    why: 'A statement of the hook was refused; the message has the reason.',
    do: 'Fix the hook and deploy.',
  },
  PROJECTION_CHANGED: {
    status: null,
    what: 'The table of a version is declared differently from the one in the database.',
    why: 'A deployed version was edited, or a table snapshot is of an older declaration.',
    do: 'Undo the change and declare the next version beside it.',
  },
  PROJECTION_REMOVED: {
    status: null,
    what: 'The program declares no active version of a projection that is being served.',
    why: 'A declaration was removed before its version was retired.',
    do: 'Declare the version again, or run `refold retire`.',
  },
  TABLE_ALTERED: {
    status: null,
    what: 'A read table is damaged: rows, columns or constraints were changed from outside.',
    why: 'Something other than Refold changed or dropped the table.',
    do: 'Run `refold rebuild`.',
  },
  INVALID_TRANSITION: {
    status: null,
    what: "A version can't make this transition.",
    why: 'Its state does not allow it, or it does not exist.',
    do: 'See `refold status`; the message says what is possible.',
  },
  PREVIEW_OUTDATED: {
    status: null,
    what: 'An action of the admin API is not the one that was previewed, or what it concerns has changed since. Nothing was done.',
    why: 'Somebody else, or the application itself, was faster.',
    do: 'Preview it again, and decide again.',
  },
  PROCESSOR_FENCED: {
    status: null,
    what: 'A process may no longer write a read table. Nothing was written.',
    why: 'Another process took over the work, or the database server was restarted.',
    do: 'Nothing: the work continues by itself.',
  },
  DATABASE_UNSUITABLE: {
    status: null,
    what: "The database can't be used; nothing was started.",
    why: 'Its version, encoding, settings, privileges or pooler do not fit.',
    do: 'Change what the message names.',
  },
  OPTION_DIFFERS: {
    status: null,
    what: 'An option differs from the one in use: `option`, `found`, `expected`. Nothing was started.',
    why: '`database.readSchema` is not the schema of the read tables, or running processes that maintain the same have another `runtime.ownership`.',
    do: 'Set the value that the message names. To change it for all, see [operating](operating.md#change-options-that-all-processes-share).',
  },
  DATABASE_NOT_MIGRATED: {
    status: null,
    what: 'The tables of Refold are older or newer than the program.',
    why: 'A release was deployed without its migrations, or an old program runs on a new database.',
    do: 'Run `refold migrate`, or update the program.',
  },
  DATABASE_ERROR: {
    status: null,
    what: 'PostgreSQL refused a statement: `sqlState`, `constraint`, `table`.',
    why: 'A missing privilege, a constraint, a time limit or a fault. Clients see `INTERNAL_SERVER_ERROR`; `DATABASE_UNAVAILABLE` for 42501, XX001, XX002, 58030 and RF004 (the sequence of positions is behind the log).',
    do: 'Act on the SQLSTATE. For 42501, grant the privilege.',
  },
  PORT_IN_USE: {
    status: null,
    what: 'The port is taken by another program.',
    why: 'A second process listens on the same address.',
    do: 'Stop that program, or set another port with `PORT` or `gateway.port`.',
  },
  IMPORT_FAILED: {
    status: null,
    what: 'An import ended early: `file`, `line`. What was written stays.',
    why: 'The file is missing, or a record of it is not valid.',
    do: 'Fix the cause and run the import again. Nothing is written twice.',
  },
} as const satisfies Readonly<Record<string, ErrorCode>>;

/** The codes that clients see. */
export type ClientErrorCode = {
  [C in keyof typeof refoldCodes]: (typeof refoldCodes)[C]['status'] extends null ? never : C;
}[keyof typeof refoldCodes];
