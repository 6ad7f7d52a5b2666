import { isDeepStrictEqual } from 'node:util';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import { keyText } from '../../src/projections/projection/projection.ts';
import { always, common, type RowHistory, type Span } from '../support/row-history.ts';
import { mark } from './switch-after.ts';
import {
  type Invoice,
  type ListUpdate,
  type QueryData,
  shared,
  subscriptions,
  type Version,
} from './switch-operations.ts';
import type { Answered, Deployed, Watched } from './switch-traffic.ts';

/** The version that gave a response, and the positions of the log at which all of the response was true. */
interface Shown {
  readonly answer: Answered;
  readonly version: Version;
  readonly span: Span;
}

export interface Histories {
  readonly 1: RowHistory;
  readonly 2: RowHistory;
  readonly customers: RowHistory;
}

/** Finds wrong responses, with everything that the log ever held. */
export class Judge {
  readonly #histories: Histories;
  /** Newest first. */
  readonly #numbers: readonly string[];
  readonly #numbersOf: ReadonlyMap<string, readonly string[]>;

  constructor(histories: Histories) {
    this.#histories = histories;
    this.#numbers = newestFirst([...histories[1].keys()].map((text) => JSON.parse(text)[0]));
    this.#numbersOf = Map.groupBy(this.#numbers, (number) => String(this.#row(1, number, always.to)?.customerId));
  }

  /** One sentence for each response that no version could give, or not at that time. */
  wrongAnswers(answers: readonly Answered[], switchesOf: (by: Deployed) => number): string[] {
    const cursors = cursorsIn(answers);
    const wrong: string[] = [];
    const shown: Shown[] = [];
    for (const answer of answers) {
      const verdict = this.#judge(answer, cursors);
      if (typeof verdict !== 'string') shown.push(verdict);
      else wrong.push(`${verdict}: ${JSON.stringify({ ...answer, by: answer.by.name, after: String(answer.after) })}`);
    }
    for (const [by, given] of Map.groupBy(shown, ({ answer }) => answer.by)) {
      wrong.push(...outOfOrder(given, switchesOf(by)).map((problem) => `the ${by.name} process ${problem}`));
    }
    return wrong;
  }

  #judge(answer: Answered, cursors: ReadonlyMap<string, string>): Shown | string {
    const { body, status, after } = answer;
    if (status !== 200 || body.errors || !body.data) return 'no response';
    const claim = this.#claimOf(body.data, answer.variables, cursors);
    const [version, other] = claim.versions;
    if (version === undefined || other !== undefined) return `of versions ${[...claim.versions].join(' and ')}`;
    const history = this.#histories[version];
    let span: Span | undefined = always;
    for (const { rows } of claim.lists)
      for (const row of rows) span = common(span, history.spanOf(keyText([row.invoiceNo]), row));
    for (const { of, count } of claim.lists) {
      const begun = count === undefined ? [] : history.beginnings(of.map((number) => keyText([number])));
      if (count !== undefined) span = common(span, { from: begun[count - 1] ?? 0, to: begun[count] ?? always.to });
    }
    if (!span) return 'at no position was all of this true';
    const { from, to } = span;
    for (const { of, first, rows } of claim.lists) {
      const expected = of.filter((number) => this.#row(version, number, from)).slice(0, first);
      const listed = rows.map((row) => row.invoiceNo);
      if (!isDeepStrictEqual(listed, expected)) return `not the list, expected ${expected}`;
    }
    const { customer } = claim;
    if (customer && !this.#histories.customers.spanOf(keyText([customer.customerId]), customer))
      return 'at no position was the customer in this state';
    return after !== undefined && to <= after ? 'older than demanded' : { answer, version, span };
  }

  #claimOf(data: QueryData, variables: Answered['variables'], cursors: ReadonlyMap<string, string>): Claim {
    const { invoiceSummary: one, named, ofThese, newest, all, page } = data;
    const numbers = (variables.numbers ?? []) as readonly string[]; // of the query `agreeing`, as are the customers
    const customers = (variables.customers ?? []) as readonly string[];
    const below = cursors.get(String(variables.after));
    const afterCursor = this.#numbers.slice(below === undefined ? 0 : this.#numbers.indexOf(below) + 1);
    const lists: Claim['lists'] = [
      ...(one ? [{ of: [String(variables.no)], first: 1, rows: [one] }] : []),
      ...(named ? [{ of: newestFirst(numbers), first: 50, rows: named.nodes }] : []),
      ...(ofThese
        ? [{ of: this.#ofCustomers(customers), first: 30, rows: ofThese.nodes, count: ofThese.totalCount }]
        : []),
      ...(newest ? [{ of: this.#numbers, first: 5, rows: newest.nodes, count: all?.totalCount }] : []),
      ...(page ? [{ of: afterCursor, first: 20, rows: page.nodes }] : []),
    ];
    const told = data._meta?.projections.map(({ version }) => version) ?? [];
    const versions = new Set([...told, ...lists.flatMap(({ rows }) => rows.map(versionOf))]);
    return { lists, versions, customer: data.customerLifetimeValue };
  }

  /** One sentence for each update that its version never had, in the order of the log. */
  wrongUpdates(watched: Watched, switches: number): string[] {
    const versions = watched.updates
      .map(({ data }) => versionOfUpdate(data))
      .filter((version) => version !== undefined);
    const wrong = isList(watched) ? this.#wrongLists(watched) : this.#wrongRows(watched);
    const switched = versions.filter((version, index) => index > 0 && version !== versions[index - 1]).length;
    if (switched !== switches) wrong.push(`moved between versions ${switched} times instead of ${switches}`);
    return wrong.map((problem) => `${watched.name} ${problem}`);
  }

  #wrongRows({ updates }: Watched): string[] {
    const wrong: string[] = [];
    let reached = 0;
    for (const { data } of updates) {
      const row = data.invoiceSummary as Invoice;
      const span = this.#histories[versionOf(row)].spanOf(keyText([row.invoiceNo]), row);
      if (!span) wrong.push(`never was ${JSON.stringify(row)}`);
      else if (span.to <= reached) wrong.push(`went back from position ${reached} to ${span.from}`);
      reached = Math.max(reached, span?.from ?? 0);
    }
    return wrong;
  }

  #wrongLists(watched: Watched): string[] {
    const wrong: string[] = [];
    const of = this.#ofCustomers([String(watched.variables.customer)]);
    let reached = 0;
    let list: ReadonlyMap<string, Invoice> = new Map();
    let version: Version = 1;
    for (const { data } of watched.updates) {
      const update = data.invoiceSummaries as ListUpdate;
      const position = Number(update.position);
      version = versionOfUpdate(data) ?? version;
      list = applied(list, update);
      if (!isDeepStrictEqual(inOrder(list), this.#list(version, of, position)))
        wrong.push(`was wrong at position ${position}: ${JSON.stringify(inOrder(list))}`);
      if (position < reached) wrong.push(`went back from position ${reached} to ${position}`);
      reached = position;
    }
    return wrong;
  }

  /** Whether a subscription shows the final content of the log. */
  isCurrent(watched: Watched, version: Version): boolean {
    if (!isList(watched)) {
      const row = watched.updates.at(-1)?.data.invoiceSummary as Invoice | undefined;
      return isDeepStrictEqual(row, this.#invoice(version, String(watched.variables.no), always.to));
    }
    const updates = watched.updates.map(({ data }) => data.invoiceSummaries as ListUpdate);
    const list = updates.reduce(applied, new Map());
    return isDeepStrictEqual(
      inOrder(list),
      this.#list(version, this.#ofCustomers([String(watched.variables.customer)]), always.to),
    );
  }

  #ofCustomers(customers: readonly string[]): readonly string[] {
    return newestFirst(customers.flatMap((customer) => this.#numbersOf.get(customer) ?? []));
  }

  #list(version: Version, numbers: readonly string[], position: number): unknown[] {
    const there = numbers.filter((number) => this.#row(version, number, position)).slice(0, 10);
    return there.map((number) => this.#invoice(version, number, position));
  }

  #invoice(version: Version, number: string, position: number) {
    return this.#histories[version].answer(this.#row(version, number, position), shared.split(' '));
  }

  #row(version: Version, number: string, position: number): Row | null {
    return this.#histories[version].at(keyText([number]), position);
  }
}

/** The content of a response. */
interface Claim {
  readonly versions: ReadonlySet<Version>;
  /** The first rows of these lists, and their lengths. */
  readonly lists: readonly {
    readonly of: readonly string[];
    readonly first: number;
    readonly rows: readonly Invoice[];
    readonly count?: number | undefined;
  }[];
  readonly customer: Record<string, unknown> | undefined;
}

const newestFirst = (numbers: readonly string[]) => [...numbers].sort().reverse();
const isList = ({ query }: Watched) => query === subscriptions.list;

function versionOf({ country }: Invoice): Version {
  return country.endsWith(mark) ? 2 : 1;
}

/** The version that a subscription's rows now come from. */
export function versionShown({ updates }: Watched): Version | undefined {
  const last = updates.findLast(({ data }) => versionOfUpdate(data) !== undefined);
  return last && versionOfUpdate(last.data);
}

/** Undefined if it has no row. */
function versionOfUpdate(data: Record<string, unknown>): Version | undefined {
  const text = JSON.stringify(data);
  return text.includes('"country":') ? (text.includes(`${mark}"`) ? 2 : 1) : undefined;
}

function applied(list: ReadonlyMap<string, Invoice>, update: ListUpdate): ReadonlyMap<string, Invoice> {
  const next = new Map(update.snapshot ? [] : list);
  for (const { invoiceNo } of update.left) next.delete(invoiceNo);
  for (const row of [...(update.snapshot ?? []), ...update.entered, ...update.changed]) next.set(row.invoiceNo, row);
  return next;
}

function inOrder(list: ReadonlyMap<string, Invoice>): Invoice[] {
  return [...list.values()].sort((a, b) => (a.invoiceNo < b.invoiceNo ? 1 : -1));
}

/** Each cursor, and the invoice that it belongs to. */
function cursorsIn(answers: readonly Answered[]): ReadonlyMap<string, string> {
  const pages = answers
    .map(({ body }) => (body.data as QueryData | undefined)?.page)
    .filter((page) => page !== undefined);
  return new Map(pages.map(({ pageInfo, nodes }) => [pageInfo.endCursor, nodes.at(-1)?.invoiceNo ?? '']));
}

/**
 * A query sent after a response has come never gets an older one, and no version that was switched away from. The versions must have been
 * 1, 2, 1, 2… with this many switches.
 */
function outOfOrder(shown: readonly Shown[], switches: number): string[] {
  const problems: string[] = [];
  const phaseOf = new Map<Shown, number>();
  const received = shown.toSorted((a, b) => a.answer.received - b.answer.received).values();
  let next = received.next().value;
  let phase = 0;
  const reached = { 1: 0, 2: 0 };
  for (const one of shown.toSorted((a, b) => a.answer.sent - b.answer.sent)) {
    for (; next && next.answer.received < one.answer.sent; next = received.next().value) {
      phase = Math.max(phase, phaseOf.get(next) ?? 0);
      reached[next.version] = Math.max(reached[next.version], next.span.from);
    }
    phaseOf.set(one, phase % 2 === one.version - 1 ? phase : phase + 1);
    if (one.span.to <= reached[one.version])
      problems.push(`answered from before position ${reached[one.version]}: ${JSON.stringify(one.answer.body)}`);
  }
  const last = Math.max(0, ...phaseOf.values());
  if (last !== switches) problems.push(`switched its version ${last} times instead of ${switches}`);
  return problems;
}
