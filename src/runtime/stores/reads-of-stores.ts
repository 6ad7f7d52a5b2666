import { RefoldError } from '../../errors.ts';
import { defaultStore, type Projection } from '../../projections/projection/projection.ts';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import type { ResponseQuery } from '../../projections/queries/response-query.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import type { RowReads } from '../../schema/contract/operation-context.ts';
import type { OperationReadModels } from '../reads/operation-read-models.ts';
import type { ReadModelSource, ReadsOptions } from '../reads/read-models.ts';

export interface ReadsOfStoresOptions {
  /** The reads of each store, by its name. */
  readonly sources: ReadonlyMap<string, ReadModelSource>;
  /** Whether an operation may read several stores, each in its own snapshot. */
  readonly across: boolean;
}

/** The reads of all stores as one: each read goes to the store of its version, which is opened with the first of them. */
export function readsOfStores({ sources, across }: ReadsOfStoresOptions): ReadModelSource {
  const [only] = sources.values();
  if (only && sources.size === 1) return only;
  return {
    open: (options) => openStores(sources, across, options),
    // Compiled queries read one store: `compileOperation` refuses others.
    answer: async (query, versions) => sourceOf(sources, storeOfQuery(query)).answer(query, versions),
  };
}

function openStores(
  sources: ReadonlyMap<string, ReadModelSource>,
  across: boolean,
  options: ReadsOptions,
): OperationReadModels {
  const opened = new Map<string, OperationReadModels>();

  function storeOf({ store }: Projection): OperationReadModels {
    const before = opened.get(store);
    if (before) return before;
    const source = sourceOf(sources, store);
    const [other] = opened.keys();
    if (other !== undefined && !across && !options.separate) throw severalStores(other, store);
    const reads = source.open(options);
    opened.set(store, reads);
    return reads;
  }

  /** The reads of a projection, whose filters must stay within its store. */
  function readsOf(projection: Projection, where: RowFilter | null = null): OperationReadModels {
    expectOneStore(projection, where);
    return storeOf(projection);
  }

  // Asynchronous, so that a refusal is a rejection as every other failure of a read.
  const rows: RowReads = {
    findByKeys: async (projection, keys, columns, where) =>
      readsOf(projection, where).findByKeys(projection, keys, columns, where),
    findByUnique: async (projection, by, values, columns, where) =>
      readsOf(projection, where).findByUnique(projection, by, values, columns, where),
    findPage: async (projection, query) => readsOf(projection, query.where).findPage(projection, query),
    count: async (projection, where, upTo) => readsOf(projection, where).count(projection, where, upTo),
    findRelated: async (projection, column, value, query) =>
      readsOf(projection, query.where).findRelated(projection, column, value, query),
    countRelated: async (projection, column, value, where, upTo) =>
      readsOf(projection, where).countRelated(projection, column, value, where, upTo),
    aggregate: async (projection, query) => readsOf(projection, query.where).aggregate(projection, query),
  };
  return {
    ...rows,
    history: async (projection, ...asked) => storeOf(projection).history(projection, ...asked),
    waitFor: async (projection, position) => storeOf(projection).waitFor(projection, position),
    progress: async (projection) => storeOf(projection).progress(projection),
    get lost() {
      return [...opened.values()].some(({ lost }) => lost === true);
    },
    samePosition: async (a, b) => (a.store === b.store ? storeOf(a).samePosition(a, b) : null),
    async readPositions() {
      const positions = await Promise.all([...opened.values()].map((reads) => reads.readPositions()));
      return positions.includes(undefined) ? undefined : positions.flatMap((some) => some ?? []);
    },
    async close() {
      await Promise.all([...opened.values()].map((reads) => reads.close()));
    },
  };
}

function sourceOf(sources: ReadsOfStoresOptions['sources'], store: string): ReadModelSource {
  const source = sources.get(store);
  if (!source) throw new TypeError(`There is no read store '${store}'.`); // the configuration is checked
  return source;
}

/** A query for `__typename` alone reads no version. */
function storeOfQuery({ reads: [first] }: ResponseQuery): string {
  return first?.projection.store ?? defaultStore;
}

function expectOneStore(projection: Projection, where: RowFilter | null): void {
  for (const { target, filter } of relatedFilters(where)) {
    if (target.projection.store !== projection.store)
      throw new RefoldError(
        'BAD_USER_INPUT',
        `A filter on ${projection.name} can't follow a relation to ${target.projection.name}: they are in different databases at present. Activate versions of both in one read store.`,
      );
    expectOneStore(target.projection, filter);
  }
}

function severalStores(one: string, other: string): RefoldError {
  return new RefoldError(
    'BAD_USER_INPUT',
    `The operation reads from the stores '${one}' and '${other}', which have no common state. Send an operation for each, or set gateway.acrossStores.`,
  );
}
