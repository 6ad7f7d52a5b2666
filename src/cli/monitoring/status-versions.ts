import { missingIndexesText } from '../../runtime/versions/table-watch.ts';
import { countText } from '../reactors/reactor-text.ts';
import { duration, integer } from '../shared/format.ts';
import { storeLines } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';
import { parseVersionId } from '../shared/version-argument.ts';
import { figuresText } from '../versions/canary.ts';

interface Count {
  readonly value: number;
  readonly isExact: boolean;
}

interface ProcessorError {
  readonly message: string;
  readonly at: string;
}

export interface Version {
  readonly id: string;
  readonly store: string;
  readonly head: string;
  readonly state: string;
  readonly health: string;
  readonly position: string;
  readonly lag: string;
  readonly lagEvents: Count;
  readonly lagSeconds: number;
  readonly eventsPerSecond: number;
  readonly etaSeconds: number | null;
  readonly owner: string | null;
  readonly inline: string | null;
  readonly startsAfter: string | null;
  readonly deadLetters: Count;
  readonly eventsSkipped: string;
  readonly heldReason: string | null;
  readonly unchecked: string | null;
  readonly missingIndexes: readonly string[];
  readonly error: ProcessorError | null;
  readonly retrying: {
    readonly position: string;
    readonly attempts: number;
    readonly message: string;
    readonly nextAt: string;
  } | null;
  readonly paused: { readonly by: string; readonly reason: string; readonly since: string } | null;
  readonly canary: ({ readonly text: string } & Parameters<typeof figuresText>[0]) | null;
  readonly partitions: readonly {
    readonly number: number;
    readonly processor: string;
    readonly owner: string | null;
    readonly position: string;
  }[];
  readonly verification: {
    readonly foundAt: string | null;
    readonly samples: readonly { readonly key: string; readonly kind: string }[];
  } | null;
  readonly rebuild: {
    readonly form: string;
    readonly position: string;
    readonly startedAtPosition: string;
    readonly snapshot: string | null;
    readonly eventsPerSecond: number;
    readonly etaSeconds: number | null;
    readonly requestedBy: string;
    readonly reason: string;
    readonly heldReason: string | null;
    readonly error: ProcessorError | null;
  } | null;
}

export const versionFields = `id store head state health position lag lagEvents { value isExact } lagSeconds eventsPerSecond
  etaSeconds owner inline startsAfter deadLetters { value isExact } eventsSkipped heldReason unchecked missingIndexes
  error { message at } retrying { position attempts message nextAt } paused { by reason since }
  canary { text percent header headerValue operations errors otherOperations otherErrors }
  partitions { number processor owner position } verification { foundAt samples { key kind columns } }
  rebuild {
    form position startedAtPosition snapshot progress eventsPerSecond etaSeconds requestedBy reason heldReason error { message at }
  }`;

/** Formats the versions as a table, followed by notes for the operator. `missing`: declared versions that nobody has registered yet. */
export function versionsToText(versions: readonly Version[], missing: readonly string[]): string {
  const table = textTable(
    ['version', 'state', 'health', 'position', 'lag', 'behind', 'events/s', 'ETA', 'owner'],
    versions
      .flatMap((version) => [rowOf(version), ...partitionRows(version)])
      .concat(missing.map((id) => [id, 'not registered', '-', '-', '-', '-', '-', '-', '-'])),
  );
  return [table, ...versions.flatMap(notesOf)].join('\n');
}

function rowOf(version: Version): string[] {
  const { id, health, position, lag, lagEvents, lagSeconds, eventsPerSecond, etaSeconds, partitions, owner } = version;
  return [
    id,
    stateOf(version),
    health.toLowerCase(),
    integer(BigInt(position)),
    countText(lagEvents),
    lagSeconds === 0 ? '-' : duration(lagSeconds),
    integer(eventsPerSecond),
    lag === '0' || version.state === 'RETIRED' ? '-' : etaSeconds === null ? '?' : duration(etaSeconds),
    partitions.length > 1 ? `${partitions.length} partitions` : (owner ?? '-'),
  ];
}

function partitionRows({ id, partitions }: Version): string[][] {
  if (partitions.length === 1) return [];
  return partitions.map(({ number, processor, position, owner }) => [
    `  ${id}/${number}`,
    '',
    processor,
    integer(BigInt(position)),
    '',
    '',
    '',
    '',
    owner ?? '-',
  ]);
}

function stateOf({ state, paused, heldReason, canary, inline, startsAfter }: Version): string {
  const notes = [
    ...(paused ? ['paused'] : []),
    ...(startsAfter === null ? [] : ['partial']),
    ...(heldReason ? ['held'] : []),
    ...(canary ? [`canary: ${canary.text}`] : []),
    ...(inline ? [`inline: ${inline}`] : []),
  ];
  return notes.length === 0 ? state.toLowerCase() : `${state.toLowerCase()} (${notes.join(', ')})`;
}

function notesOf(version: Version): string[] {
  const { id, startsAfter, heldReason, canary, deadLetters, eventsSkipped, error } = version;
  return [
    ...storeLines(version),
    ...pausedNote(version),
    ...(startsAfter === null
      ? []
      : [`${id} is partial: it holds only events after position ${integer(BigInt(startsAfter))}`]),
    ...(heldReason ? [`${id} is held: ${heldReason}`] : []),
    ...(canary ? [`${id} as a canary has ${figuresText(canary)}`] : []),
    ...differencesOf(version),
    ...(deadLetters.value > 0
      ? [`${id} has ${countText(deadLetters)} dead letters: 'refold dead-letters list ${id}'`]
      : []),
    ...(eventsSkipped === '0'
      ? []
      : [
          `${id} has skipped ${integer(BigInt(eventsSkipped))} events: see 'onError' in its declaration, and the log for each`,
        ]),
    ...retryingNote(version),
    ...rebuildNote(version),
    ...missingIndexNote(version),
    ...(error ? [`${id} stopped at ${error.at}: ${error.message}`] : []),
  ];
}

function pausedNote({ id, paused }: Version): string[] {
  if (!paused) return [];
  const { since, by, reason } = paused;
  return [`${id} is paused since ${since} by ${by} (${reason}): 'refold resume ${id}' resumes it`];
}

function missingIndexNote({ id, missingIndexes }: Version): string[] {
  return missingIndexes.length === 0 ? [] : [missingIndexesText({ ...parseVersionId(id), missingIndexes })];
}

function retryingNote({ id, retrying }: Version): string[] {
  if (!retrying) return [];
  const { position, nextAt, attempts, message } = retrying;
  return [
    `${id} tries position ${position} again at ${nextAt}, after ${integer(attempts)} failed attempts: ${message}`,
  ];
}

function rebuildNote({ id, head, rebuild }: Version): string[] {
  if (!rebuild) return [];
  const { form, snapshot, startedAtPosition, position, eventsPerSecond, etaSeconds } = rebuild;
  const from = snapshot === null ? '' : ` from snapshot ${snapshot} at position ${integer(BigInt(startedAtPosition))}`;
  const eta = etaSeconds === null ? '' : `, ETA ${duration(etaSeconds)}`;
  const place = `at position ${integer(BigInt(position))} of ${integer(BigInt(head))} (${integer(eventsPerSecond)}/s${eta})`;
  const stopped = rebuild.error ? `; stopped: ${rebuild.error.message}` : '';
  const held = rebuild.heldReason ? `; does not take over: ${rebuild.heldReason}` : '';
  return [
    `${id} is being rebuilt${form === 'in place' ? ' in place' : ''}${from}: ${place}, requested by ${rebuild.requestedBy} (${rebuild.reason})${stopped}${held}`,
  ];
}

function differencesOf({ id, verification }: Version): string[] {
  if (!verification || verification.foundAt === null) return [];
  const keys = verification.samples.slice(0, 3).map(({ key, kind }) => `${key} ${kind}`);
  return [
    `${id} was found to differ from the log at ${verification.foundAt} (${keys.join('; ')}): 'refold verify ${id}' compares all rows, 'refold rebuild ${id}' rebuilds them.`,
  ];
}
