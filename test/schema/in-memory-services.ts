import type { CommandStream } from '../../src/commands/command-options.ts';
import type { Command } from '../../src/commands/define-command.ts';
import { ConcurrencyConflict, RefoldError } from '../../src/errors.ts';
import type { RecordedEvent } from '../../src/events/event.ts';
import type { EventFamily } from '../../src/events/event-family.ts';
import { beginning, type GlobalPosition, globalPosition, laterPosition } from '../../src/events/global-position.ts';
import type { CommandCall, GatewayServices, OperationReads } from '../../src/gateway/operations/gateway-services.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import { keyText, type Projection, type RowKey } from '../../src/projections/projection/projection.ts';
import type { Pins, ServedVersion, VersionMap, VersionProgress } from '../../src/projections/projection/version-map.ts';
import type { ReadPosition } from '../../src/projections/queries/change-cursor.ts';
import type { ChangeFeedQuery, ChangeFeedUpdate } from '../../src/schema/contract/change-feed.ts';
import type {
  CommandResult,
  LiveListQuery,
  LiveListUpdate,
  LiveRow,
  OperationContext,
} from '../../src/schema/contract/operation-context.ts';
import { naiveAggregates } from '../store/queries/naive-aggregates.ts';
import { matches, naivePage, sorted } from '../store/queries/naive-rows.ts';
import { createRecorder, ReadTableInMemory } from '../support/in-memory.ts';

/** One read, as a resolver requested it. */
export interface RecordedRead {
  readonly kind:
    | 'findByKeys'
    | 'findByUnique'
    | 'findPage'
    | 'count'
    | 'findRelated'
    | 'countRelated'
    | 'aggregate'
    | 'history'
    | 'waitFor'
    | 'progress';
  readonly version: string;
  readonly columns?: readonly string[];
  readonly measures?: readonly string[];
  readonly position?: GlobalPosition;
}

/** Everything that the schema and the gateway need, in memory: a log, read tables, versions, commands and live reads. */
export class InMemoryServices implements GatewayServices {
  readonly reads: RecordedRead[] = [];
  readonly executed: { readonly command: string; readonly input: unknown; readonly options: CommandCall }[] = [];
  readonly opened: { readonly snapshot: boolean }[] = [];
  /** Versions that can be pinned. */
  maintained: readonly Projection[] = [];
  /** Number of operations with open reads. */
  open = 0;
  /** Number of live reads that have a consumer. */
  subscribed = 0;
  readonly #events: RecordedEvent[] = [];
  readonly #record = createRecorder();
  readonly #tables = new Map<string, { readonly table: ReadTableInMemory; position: GlobalPosition }>();
  readonly #held = new Set<string>();
  readonly #changes = new Set<() => void>();
  readonly #versionListeners = new Set<() => void>();
  readonly #replays = new Map<string, CommandResult>();
  #map: VersionMap;

  constructor(served: readonly ServedVersion[]) {
    this.#map = versionMap(served);
  }

  readonly versions = {
    current: () => this.#map,
    pinned: (pins: Pins): VersionMap => {
      const served = [...this.#map.served.values()].map((version) => {
        const pin = pins.get(version.projection.name);
        const pinned = this.maintained.find(
          ({ name, version: other }) => name === version.projection.name && other === pin,
        );
        if (pin !== undefined && !pinned)
          throw new RefoldError('BAD_USER_INPUT', `${version.projection.name}@${pin} can't be pinned.`);
        return pinned ? active(pinned) : version;
      });
      const deprecated = served
        .filter(
          ({ projection }) => projection.version < (this.#map.served.get(projection.name)?.projection.version ?? 0),
        )
        .map(({ projection }) => ({
          id: projection.id,
          since: new Date('2026-01-31T00:00:00Z'),
          sunset: projection.sunset,
        }));
      return { ...versionMap(served), deprecated };
    },
    onChange: (listener: () => void) => {
      this.#versionListeners.add(listener);
      return () => void this.#versionListeners.delete(listener);
    },
  };

  /** The effect of an activation. */
  serve(...served: readonly ServedVersion[]): void {
    this.#map = versionMap(served);
    for (const listener of this.#versionListeners) listener();
    this.#changed();
  }

  get head(): GlobalPosition {
    return this.#events.at(-1)?.position ?? beginning;
  }

  /** Stops a version while the log grows. */
  hold(projection: Projection): void {
    this.#table(projection);
    this.#held.add(projection.id);
  }

  /** Lets it catch up. */
  release(projection: Projection): void {
    this.#held.delete(projection.id);
    this.#catchUp(projection);
    this.#changed();
  }

  async append(family: EventFamily, streamId: string, ...events: { type: string; payload: unknown }[]) {
    const recorded = await this.#record({ family, streamId, events });
    this.#events.push(...recorded);
    for (const { projection } of this.#map.served.values()) this.#catchUp(projection);
    this.#changed();
    return recorded;
  }

  async execute(command: Command, input: unknown, options: CommandCall): Promise<CommandResult> {
    this.executed.push({ command: command.name, input, options });
    const parsed = await command.parse(input);
    const replay = options.idempotencyKey === undefined ? undefined : this.#replays.get(options.idempotencyKey);
    if (replay) return replay;
    const streams = command.streamsOf(parsed);
    const found = streams.map(({ state, streamId }) => {
      const past = this.#events.filter((event) => event.family === state.family.name && event.streamId === streamId);
      return { past, state: past.reduce((folded, event) => state.apply(folded, event), state.initial()) };
    });
    const [{ state: first, streamId }] = streams as [CommandStream]; // a command is about at least one
    const streamVersions = found.map(({ past }) => past.length);
    const [actual = 0] = streamVersions;
    const expected = options.expectedVersion;
    if (typeof expected === 'number' && expected !== actual)
      throw new ConcurrencyConflict({ family: first.family.name, streamId, expected, actual });
    const now = '2026-01-31T12:00:00.000Z';
    const loaded = await command.load(parsed, { metadata: {}, now });
    const states = found.map(({ state }) => state);
    const decided = command.decide(parsed, states, streams, { streamVersions, metadata: {}, now, loaded });
    const events: RecordedEvent[] = [];
    for (const [index, { state, streamId }] of streams.entries()) {
      const added = decided[index] ?? [];
      if (added.length > 0) events.push(...(await this.append(state.family, streamId, ...added)));
    }
    const result = {
      position: events.at(-1)?.position ?? found[0]?.past.at(-1)?.position ?? beginning,
      streamId,
      streamVersion: actual + (decided[0]?.length ?? 0),
      events,
    };
    if (options.idempotencyKey !== undefined) this.#replays.set(options.idempotencyKey, result);
    return result;
  }

  openReadModels(options: Parameters<GatewayServices['openReadModels']>[0]): OperationReads {
    this.opened.push({ snapshot: options.snapshot, ...(options.positions ? { positions: true } : {}) });
    this.open++;
    let closed = false;
    const snapshots = new Map<string, readonly Row[]>();
    let snapshotAt = beginning;
    const positions = new Map<string, ReadPosition>();
    const rowsOf = (projection: Projection) => {
      const { name, version } = projection;
      positions.set(name, {
        store: 'default',
        name,
        position: this.#position(projection),
        rows: { version, generation: 1 },
      });
      if (closed) throw new Error('read after the end of the operation');
      if (!options.snapshot) return this.rows(projection);
      const rows = snapshots.get(projection.id) ?? this.rows(projection);
      if (snapshots.size === 0) snapshotAt = this.head;
      snapshots.set(projection.id, rows);
      return rows;
    };
    return {
      findByKeys: async (projection, keys, columns, where = null) => {
        this.reads.push({ kind: 'findByKeys', version: projection.id, columns });
        const rows = rowsOf(projection).filter((row) => matches(where, row));
        const byKey = new Map(rows.map((row) => [keyText(keyOf(projection, row)), row]));
        return keys.map((key) => {
          const row = byKey.get(keyText(key));
          return row ? pick(row, [...columns, ...projection.keyColumns]) : null;
        });
      },
      findByUnique: async (projection, by, values, columns, where = null) => {
        this.reads.push({ kind: 'findByUnique', version: projection.id, columns });
        const rows = rowsOf(projection).filter((row) => matches(where, row));
        const found = rows.find((row) => keyText(by.map((name) => row[name])) === keyText(values));
        return found ? pick(found, [...columns, ...projection.keyColumns]) : null;
      },
      findPage: async (projection, query) => {
        this.reads.push({ kind: 'findPage', version: projection.id, columns: query.columns });
        const page = naivePage(projection, rowsOf(projection), query);
        const columns = [...query.columns, ...query.orderBy.map((order) => order.column), ...projection.keyColumns];
        return { ...page, rows: page.rows.map((row) => pick(row, columns)) };
      },
      count: async (projection, where, upTo) => {
        this.reads.push({ kind: 'count', version: projection.id });
        return Math.min(
          rowsOf(projection).filter((row) => matches(where, row)).length,
          upTo ?? Number.POSITIVE_INFINITY,
        );
      },
      findRelated: async (projection, column, value, query) => {
        this.reads.push({ kind: 'findRelated', version: projection.id, columns: query.columns });
        const rows = rowsOf(projection).filter((row) => keyText([row[column]]) === keyText([value]));
        return naivePage(projection, rows, query);
      },
      countRelated: async (projection, column, value, where, upTo) => {
        this.reads.push({ kind: 'countRelated', version: projection.id });
        const rows = rowsOf(projection).filter((row) => keyText([row[column]]) === keyText([value]));
        return Math.min(rows.filter((row) => matches(where, row)).length, upTo ?? Number.POSITIVE_INFINITY);
      },
      history: async (projection, key) => {
        this.reads.push({ kind: 'history', version: projection.id });
        let row: Row | null = null;
        return this.#events
          .filter((event) =>
            projection.filter.some(({ family, types }) => family === event.family && types.includes(event.type)),
          )
          .filter((event) => projection.keysOf(event).some((touched) => keyText(touched) === keyText(key)))
          .map((event) => {
            const before: Row | null = row;
            row = projection.apply(row, event, key);
            return { event, before, row };
          });
      },
      aggregate: async (projection, query) => {
        const measures = query.measures.map((measure) => Object.values(measure).join(' '));
        this.reads.push({ kind: 'aggregate', version: projection.id, measures });
        return naiveAggregates(projection, rowsOf(projection), query);
      },
      waitFor: async (projection, position) => {
        this.reads.push({ kind: 'waitFor', version: projection.id, position });
        if (position > snapshotAt) snapshots.clear();
        if (this.#position(projection) >= position) return;
        if (position > this.head)
          throw new RefoldError('POSITION_TIMEOUT', `${projection.id} did not reach ${position}.`, {
            projection: projection.name,
            position,
            reached: this.#position(projection),
          });
        await new Promise<void>((resolve) => {
          const look = () => {
            if (this.#position(projection) < position) return;
            this.#changes.delete(look);
            resolve();
          };
          this.#changes.add(look);
        });
      },
      progress: async (projection) => {
        this.reads.push({ kind: 'progress', version: projection.id });
        return this.#progress(projection);
      },
      readPositions: async () => (options.positions ? [...positions.values()] : []),
      close: async () => {
        if (closed) throw new Error('closed twice');
        closed = true;
        this.open--;
      },
    };
  }

  readonly live = {
    changes: (projection: Projection, query: ChangeFeedQuery) => this.#changesOf(projection, query),
    row: (projection: Projection, key: RowKey, columns: readonly string[]): AsyncIterableIterator<LiveRow> =>
      this.#live(
        projection,
        columns,
        (served) => {
          const row = this.rows(served).find((candidate) => keyText(keyOf(served, candidate)) === keyText(key)) ?? null;
          return { row, position: this.#position(served) };
        },
        (update) => keyText(update.row ? columns.map((name) => update.row?.[name]) : []),
      ),
    list: (projection: Projection, query: LiveListQuery): AsyncIterableIterator<LiveListUpdate> => {
      let before: readonly Row[] | undefined;
      return this.#live(
        projection,
        query.columns,
        (served) => {
          const rows = sorted(served, this.rows(served), query).slice(0, query.first);
          const text = (row: Row) => keyText(keyOf(served, row));
          const old = new Map((before ?? []).map((row) => [text(row), row]));
          const now = new Map(rows.map((row) => [text(row), row]));
          const update = {
            position: this.#position(served),
            snapshot: before ? null : rows,
            entered: before ? rows.filter((row) => !old.has(text(row))) : [],
            changed: rows.filter((row) => old.has(text(row)) && old.get(text(row)) !== row),
            left: [...old.values()].filter((row) => !now.has(text(row))).map((row) => keyOf(served, row)),
          };
          before = rows;
          return update;
        },
        (update) =>
          update.snapshot || update.entered.length + update.changed.length + update.left.length > 0 ? undefined : '',
      );
    },
  };

  /** Does not remember deleted rows: it can be resumed only by the rows that exist. */
  #changesOf(projection: Projection, query: ChangeFeedQuery): AsyncIterableIterator<ChangeFeedUpdate> {
    let before: ReadonlyMap<string, Row> | undefined;
    return this.#live(
      projection,
      query.columns,
      (served) => {
        const text = (row: Row) => keyText(keyOf(served, row));
        const rows = this.rows(served).filter((row) => matches(query.where, row));
        const now = new Map(rows.map((row) => [text(row), row]));
        const position = this.#position(served);
        const reset = before === undefined && query.since === null;
        const known = before ?? (reset ? new Map<string, Row>() : now);
        before = now;
        const gone = [...known].filter(([key]) => !now.has(key)).map(([, row]) => row);
        const written = [...now].filter(([key, row]) => known.get(key) !== row).map(([, row]) => row);
        return {
          position,
          cursor: { position, rows: { version: served.version, generation: 1 } },
          reset,
          lagged: null,
          changes: [
            ...gone.map((row) => ({ operation: 'DELETE', key: keyOf(served, row), row: null, position }) as const),
            ...written.map((row) => ({ operation: 'UPSERT', key: keyOf(served, row), row, position }) as const),
          ],
        };
      },
      (update) => (update.changes.length > 0 ? undefined : ''),
    );
  }

  /** Yields the state, and again whenever its text changes; `''` means that there is nothing to send. */
  #live<T>(
    projection: Projection,
    columns: readonly string[],
    read: (served: Projection) => T,
    textOf: (value: T) => string | undefined,
  ): AsyncIterableIterator<T> {
    this.subscribed++;
    let told: string | undefined;
    let first = true;
    let ended = false;
    let wake = () => {};
    const end = () => {
      if (!ended) this.subscribed--;
      ended = true;
      this.#changes.delete(changed);
      wake();
    };
    const changed = () => wake();
    this.#changes.add(changed);
    const look = (): T | undefined => {
      const served = this.#map.served.get(projection.name)?.projection ?? projection;
      const missing = columns.filter((name) => !(name in served.columns));
      if (missing.length > 0) {
        end();
        throw new RefoldError('PROJECTION_SWITCHED', `${served.id} has no column '${missing.join("', '")}'.`, {
          projection: served.name,
          version: served.version,
        });
      }
      const value = read(served);
      const text = textOf(value);
      if (!first && (text === '' || (text !== undefined && text === told))) return undefined;
      first = false;
      told = text;
      return value;
    };
    const iterator: AsyncIterableIterator<T> = {
      [Symbol.asyncIterator]: () => iterator,
      next: async () => {
        for (;;) {
          if (ended) return { done: true, value: undefined };
          const woken = new Promise<void>((resolve) => {
            wake = resolve;
          });
          const value = look();
          if (value !== undefined) return { done: false, value };
          await woken;
        }
      },
      return: async () => {
        end();
        return { done: true, value: undefined };
      },
    };
    return iterator;
  }

  /** A context as the gateway creates it for one operation. */
  context(options: { readonly after?: bigint; readonly snapshot?: boolean } = {}): OperationContext {
    return {
      versions: this.#map,
      viewer: 'system',
      readModels: this.openReadModels({ snapshot: options.snapshot ?? true }),
      commands: this,
      live: this.live,
      after: options.after === undefined ? null : globalPosition(options.after),
      lastEventId: null,
    };
  }

  rows(projection: Projection): readonly Row[] {
    return [...this.#table(projection).table.rows.values()];
  }

  #table(projection: Projection) {
    const known = this.#tables.get(projection.id);
    if (known) return known;
    const made = { table: new ReadTableInMemory(projection), position: beginning };
    this.#tables.set(projection.id, made);
    this.#catchUp(projection);
    return made;
  }

  #catchUp(projection: Projection): void {
    const entry = this.#table(projection);
    if (this.#held.has(projection.id)) return;
    entry.table.fold(this.#events.filter((event) => event.position > entry.position));
    entry.position = laterPosition(entry.position, this.head);
  }

  #position(projection: Projection): GlobalPosition {
    return this.#table(projection).position;
  }

  #progress(projection: Projection): VersionProgress {
    const position = this.#position(projection);
    return {
      projection: projection.name,
      version: projection.version,
      state: this.#map.served.get(projection.name)?.state ?? 'building',
      position,
      head: this.head,
      progress: this.head === 0n ? 1 : Number(position) / Number(this.head),
      paused: false,
      heldRows: 0,
    };
  }

  #changed(): void {
    for (const listener of [...this.#changes]) listener();
  }
}

export function active(projection: Projection): ServedVersion {
  return { projection, active: true, state: 'active' };
}

export function building(projection: Projection): ServedVersion {
  return { projection, active: false, state: 'building' };
}

export function versionMap(served: readonly ServedVersion[]): VersionMap {
  return {
    revision: served.map(({ projection, active }) => `${projection.id}${active ? '' : '?'}`).join(' '),
    shape: served.map(({ projection }) => projection.id).join(' '),
    served: new Map(served.map((version) => [version.projection.name, version])),
  };
}

function keyOf(projection: Projection, row: Row): RowKey {
  return projection.keyColumns.map((name) => row[name]);
}

function pick(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map((name) => [name, row[name]]));
}
