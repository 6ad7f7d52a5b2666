import fc from 'fast-check';
import { parse, visit } from 'graphql';
import {
  days,
  ids,
  jsonString,
  labels,
  owners,
  related,
  type Text,
  type TypeName,
  types,
  where,
} from './random-conditions.ts';

/** Random queries over the read models in `things.ts`: any selection, aliases, fragments, conditions, pages, filters and orders. */
export interface RandomOperation {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
}

const scalars = [
  'thingId',
  'ownerId',
  'label',
  'token',
  'seal',
  'count',
  'big',
  'amount',
  'flag',
  'day',
  'at',
  'status',
  'json',
];

/** Names for fields: the same field may come several times, also under one name. */
const aliased = (field: string): Text =>
  fc
    .constantFrom('', `a_${field.replaceAll(/\W.*/g, '')}: `, `b_${field.replaceAll(/\W.*/g, '')}: `)
    .map((alias) => alias + field);
/** The same name for the same arguments. */
function nameFor(prefix: string, args: string): string {
  let hash = 0;
  for (const character of args) hash = (hash * 31 + character.charCodeAt(0)) % 1_000_003;
  return `${prefix}${hash}: `;
}

const directive: Text = fc.constantFrom(
  ...Array.from({ length: 12 }, () => ''),
  ' @include(if: $yes)',
  ' @skip(if: $no)',
  ' @include(if: $no)',
  ' @skip(if: true)',
);

function selection(parts: readonly Text[], type: string): Text {
  const one = fc.oneof(...parts);
  const some = fc.array(
    fc.tuple(one, directive).map(([field, on]) => (on === '' ? field : `... ${on} { ${field} }`)),
    {
      minLength: 1,
      maxLength: 4,
    },
  );
  return some.chain((fields) => {
    const text = `{ __typename ${fields.join(' ')} }`;
    return fc.constantFrom(text, text, `{ ... on ${type} ${text} }`, `{ x: __typename ... ${text} }`);
  });
}

const length: Text = fc.constantFrom(
  '',
  'first: 0',
  'first: 1',
  'first: 3',
  'last: 2',
  'last: 50',
  'first: $first',
  'first: 31',
);

/** Stands for the cursor of a thing in an order, until it was read from the API. */
const cursorText = (order: string, index: number) => `cursor of ${index} in ${order}`;
const cursorPattern = /^cursor of (\d+) in (.*)$/;
export const cursorsIn = (query: string): string[] =>
  [...query.matchAll(/"(cursor of [^"]*)"/g)].map(([, text = '']) => text);

/** The order and the thing's place in `ids`. */
export function cursorAsked(text: string): { readonly index: number; readonly order: string } {
  const [, index, order = ''] = cursorPattern.exec(text) ?? [];
  return { index: Number(index), order };
}

const orderText = (by: readonly string[]) => `[${by.map((one) => `{ ${one} }`).join(' ')}]`;

/** `reach`: how many relations away its conditions may be. */
function pageArguments(type: TypeName, reach: number): Text {
  const all = types[type].orders;
  const orderBy = fc.array(fc.constantFrom(...all), { maxLength: 3 }).map((by) => `orderBy: ${orderText(by)}`);
  // Few orders, because the API has to return the cursors of each.
  const orders = all.map((first, index) => orderText([first, ...all.slice(index + 3, index + 5)]));
  const place = fc
    .tuple(fc.constantFrom('[]', ...orders), fc.constantFrom('after', 'before'), fc.nat({ max: ids.length - 1 }))
    .map(([order, side, index]) => `orderBy: ${order} ${side}: "${cursorText(order, index)}"`);
  return fc
    .tuple(
      fc.oneof(
        fc.constant(''),
        where(type, reach).map((text) => `where: ${text}`),
        ...(type === 'Thing' ? [fc.constant('where: $where')] : []),
      ),
      fc.oneof(fc.constant(''), orderBy, ...(type === 'Thing' ? [place] : [])),
      length,
    )
    .map((parts) => parts.filter((part) => part !== '').join(', '))
    .map((text) => (text === '' ? '' : `(${text})`));
}

const detail = selection(
  [
    fc.constantFrom('name', 'price', 'count', 'at'),
    fc.constantFrom('more { flag day json }', 'm: more { __typename day }'),
  ],
  'ThingDetail',
);

const leavesOf: Readonly<Record<TypeName, readonly Text[]>> = {
  Thing: [
    fc.constantFrom(...scalars, 'id', 'prices', 'grid').chain(aliased),
    detail.map((text) => `detail ${text}`),
    fc.constantFrom('items { at tags price }', 'items { tags }'),
  ],
  Owner: [fc.constantFrom('ownerId', 'name', 'rank', 'id').chain(aliased)],
  Place: [fc.constantFrom('name', 'day', 'lane', 'id').chain(aliased)],
};

/** A row's columns and, up to `depth` relations away, its related rows. */
function row(type: TypeName, depth: number): Text {
  const leaves = leavesOf[type];
  if (depth === 0) return selection(leaves, type);
  const { one, many } = types[type];
  return selection(
    [
      ...leaves,
      ...Object.entries(one).map(([name, target]) => row(target, depth - 1).map((text) => `${name} ${text}`)),
      ...Object.entries(many).map(([name, target]) =>
        fc
          .tuple(pageArguments(target, 2), page(target, depth - 1))
          .map(([args, text]) => `${nameFor(name[0] ?? '', args)}${name}${args} ${text}`),
      ),
    ],
    type,
  );
}

function page(type: TypeName, depth: number): Text {
  return selection(
    [
      fc
        .tuple(fc.constantFrom('cursor', '', 'c: cursor'), row(type, depth))
        .map(([cursor, text]) => `edges { ${cursor} node ${text} }`),
      row(type, depth).map((text) => `nodes ${text}`),
      fc.constantFrom('totalCount', 'n: totalCount', 'some: totalCount(upTo: 3)', 'edges { cursor }'),
      fc.constantFrom(
        'pageInfo { hasNextPage hasPreviousPage startCursor endCursor }',
        'pageInfo { end: endCursor }',
        'p: pageInfo { __typename hasNextPage }',
      ),
    ],
    `${type}Connection`,
  );
}

const numbers = ['count', 'big', 'amount'];
const extremes = [...numbers, 'thingId', 'label', 'day', 'at'];
const measuresOf = (kinds: readonly string[], columns: readonly string[]): Text =>
  fc
    .tuple(fc.constantFrom(...kinds), fc.subarray([...columns], { minLength: 1 }))
    .map(([kind, selected]) => `${kind} { __typename ${selected.join(' ')} }`);
const measures = [
  fc.constantFrom('count', 'n: count'),
  measuresOf(['countDistinct'], ['thingId', 'ownerId', 'label', 'token', 'seal', 'amount', 'flag', 'at', 'status']),
  measuresOf(['sum', 'avg'], numbers),
  measuresOf(['min', 'max'], extremes),
];
const groupings = [
  'label',
  'flag',
  'status',
  'count',
  'amount',
  'big',
  'day',
  'dayMonth',
  'at',
  'atHour',
  'atDay',
  'atMonth',
];
const aggregate = (reach: number): Text =>
  fc
    .tuple(
      fc.oneof(
        fc.constant(''),
        where('Thing', Math.min(2, reach)).map((text) => `(where: ${text})`),
      ),
      selection(measures, 'ThingAggregate'),
    )
    .map(([args, text]) => `thingsAggregate${args} ${text}`);
const grouped = (reach: number): Text =>
  fc
    .tuple(
      fc.subarray(groupings, { maxLength: 3 }),
      fc.constantFrom(
        '',
        ', having: { count: { gt: 1 } }',
        ', orderBy: [{ count: DESC }]',
        ', having: { countDistinct: { ownerId: { gt: 1 } } }, orderBy: [{ countDistinct: { label: DESC } }]',
        ', orderBy: [{ sum: { amount: ASC } }]',
        ', first: 2',
        ', where: { label: { in: $labels } }',
      ),
      fc.oneof(
        fc.constant(''),
        where('Thing', Math.min(1, reach)).map((text) => `, where: ${text}`),
      ),
      selection(
        [...measures, fc.subarray(groupings, { minLength: 1 }).map((names) => `key { ${names.join(' ')} }`)],
        'ThingGroup',
      ),
    )
    .map(
      ([by, args, text, fields]) =>
        `thingsGrouped(by: [${by.join(', ')}]${args}${args.includes('where') ? '' : text}) ${fields}`,
    );

function root(reach: number): Text {
  const [one, two] = [Math.min(1, reach), Math.min(2, reach)];
  return fc.oneof(
    aggregate(reach),
    grouped(reach),
    fc
      .tuple(fc.constantFrom(...ids, 'nobody'), row('Thing', two))
      .map(([id, text]) => `thing(thingId: ${jsonString(id)}) ${text}`),
    row('Thing', one).map((text) => `thing(thingId: $id) ${text}`),
    fc
      .tuple(fc.constantFrom(...owners), row('Owner', two))
      .map(([id, text]) => `owner(ownerId: ${jsonString(id)}) ${text}`),
    fc
      .tuple(fc.constantFrom(...days), fc.integer({ min: 0, max: 3 }), row('Place', one))
      .map(([day, lane, text]) => `place(day: "${day}", lane: ${lane}) ${text}`),
    fc.tuple(pageArguments('Thing', two), page('Thing', one)).map(([args, text]) => `things${args} ${text}`),
    fc.tuple(pageArguments('Owner', two), page('Owner', one)).map(([args, text]) => `owners${args} ${text}`),
    fc.tuple(pageArguments('Place', two), page('Place', one)).map(([args, text]) => `places${args} ${text}`),
  );
}

/** Reads across relations, and selects everything that it finds. */
const foundByRelations: Text = fc.oneof(
  related('Thing', 2).map((text) => `things(where: { ${text} }, first: 50) { nodes { thingId } }`),
  related('Thing', 3).map((text) => `thingsAggregate(where: { ${text} }) { count min { thingId } max { thingId } }`),
  related('Owner', 2).map((text) => `owners(where: { ${text} }) { nodes { ownerId } }`),
  related('Place', 2).map((text) => `places(where: { ${text} }) { nodes { name } }`),
);

const foundByColumns: Text = fc.oneof(
  where('Thing', 0).map((text) => `things(where: ${text}, first: 50) { nodes { thingId } }`),
  where('Thing', 0).map((text) => `thingsAggregate(where: ${text}) { count min { thingId } max { thingId } }`),
  where('Owner', 0).map((text) => `owners(where: ${text}) { nodes { ownerId } }`),
  where('Place', 0).map((text) => `places(where: ${text}) { nodes { name } }`),
);

const operationsWithin = (reach: number): fc.Arbitrary<RandomOperation> =>
  fc
    .record({
      roots: fc.array(root(reach), { minLength: 1, maxLength: 2 }),
      found: reach === 0 ? foundByColumns : foundByRelations,
      id: fc.constantFrom(...ids, 'nobody'),
      first: fc.constantFrom(0, 1, 2, 3, 20, 30, 49, null, 50, 51),
      labels: fc.subarray([...labels, 'x']),
      where: fc.constantFrom(
        null,
        {},
        { flag: { eq: false } },
        { day: { in: ['2026-01-31'] } },
        { label: { eq: 'south' } },
        { label: { eq: 'north' } },
        { count: { gt: 1 }, or: [{ flag: { eq: true } }, { amount: { lt: '1' } }] },
        { label: null },
      ),
      yes: fc.boolean(),
    })
    .map(({ roots, found, yes, ...variables }) => ({
      query: `query ($id: ID!, $first: Int, $labels: [String!]!, $where: ThingFilter, $yes: Boolean!, $no: Boolean = false) { __typename ${roots
        .map((text, index) => (index === 0 ? text : `r${index}: ${text}`))
        .join(
          ' ',
        )} found: ${found} use: thing(thingId: $id) @include(if: $yes) { label } unused: things(first: 0, where: { label: { in: $labels } }) { nodes { thingId } } u: things(where: $where, first: $first) { totalCount } v: __typename @skip(if: $no) }`,
      variables: { ...variables, yes },
    }))
    // The gateway accepts at most 50 directives, and an operation with more than 500 fields is executed.
    .filter(({ query }) => query.split('@').length <= 50 && fieldsIn(query) <= 500);

export const randomOperation = operationsWithin(Number.POSITIVE_INFINITY);

/** Operations that follow no relation. */
export const unrelatedOperation = operationsWithin(0);

function fieldsIn(query: string): number {
  let fields = 0;
  visit(parse(query), { Field: () => void fields++ });
  return fields;
}
