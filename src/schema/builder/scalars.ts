import { GraphQLError, GraphQLScalarType, Kind, type ValueNode } from 'graphql';
import { GraphQLJSON, GraphQLSafeInt } from 'graphql-scalars';
import { type PositionToken, parseToken } from '../../events/position-token.ts';
import { type Column, t } from '../../projections/columns/column.ts';
import { isDecimal } from '../../projections/columns/decimal.ts';
import { createRowCodec } from '../../projections/columns/row-codec.ts';
import { bytesOfBase64 } from '../values/column-kinds.ts';

/**
 * The custom scalars. Numbers that JavaScript cannot hold exactly are decimal strings in both directions. Times are strings too, because a
 * `Date` would lose the microseconds.
 */
export const scalars = {
  Base64: textScalar({
    name: 'Base64',
    description: "Bytes in base64, with padding, such as 'aGk='.",
    specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc4648#section-4',
    expected: "bytes in base64, with padding, such as 'aGk='",
    parse: (text) => (bytesOfBase64(text) ? text : undefined),
    serialize: base64Of,
  }),
  BigInt: textScalar({
    name: 'BigInt',
    description: "A 64-bit integer as a decimal string, such as '9007199254740993'.",
    expected: "a whole number of 64 bits as a decimal string, such as '42'",
    numbers: true,
    parse: (text) => (/^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text) ? text : undefined),
    serialize: String,
  }),
  Date: textScalar({
    name: 'Date',
    description: "A calendar date, such as '2026-01-31'.",
    expected: "a day such as '2026-01-31'",
    parse: canonicalText(t.date()),
  }),
  DateTime: textScalar({
    name: 'DateTime',
    description:
      "A time with its zone, such as '2026-01-31T12:00:00Z'. Responses are in UTC, with microseconds if they are not zero.",
    specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
    expected: "a time with its zone, such as '2026-01-31T12:00:00Z', to the microsecond at most",
    parse: (text) => canonicalText(t.timestamptz())(text) && text,
  }),
  Decimal: textScalar({
    name: 'Decimal',
    description: "An exact decimal as a string, such as '12.50'.",
    expected: "an exact decimal as a string, such as '12.50' (a JSON number has already lost its exactness)",
    numbers: true,
    // The length that PostgreSQL's numeric can compare.
    parse: (text) => (/^-?\d{1,1000}(\.\d{1,1000})?$/.test(text) ? text : undefined),
    serialize: (value) => (isDecimal(value) ? value.toFixed() : String(value)),
  }),
  JSON: new GraphQLScalarType<unknown, unknown>({
    ...GraphQLJSON.toConfig(),
    extensions: typedAs('unknown'),
    parseLiteral(node, variables) {
      refuseNames(node);
      return GraphQLJSON.parseLiteral(node, variables);
    },
  }),
  Position: new GraphQLScalarType<PositionToken, string>({
    name: 'Position',
    extensions: typedAs('string'),
    description:
      "A position of the event log, as a decimal string such as '1042', or with a mark of the event there, such as '1042.9f3c21ab'. Each payload of a command has one. Pass it to `@after` unchanged.",
    serialize: String,
    parseValue: (value) => parsePosition(typeof value === 'string' ? value : undefined, value),
    parseLiteral: (node) =>
      parsePosition(node.kind === Kind.STRING || node.kind === Kind.INT ? node.value : undefined, shown(node), node),
  }),
  SafeInt: GraphQLSafeInt,
  UUID: textScalar({
    name: 'UUID',
    description: 'A UUID in lower case.',
    specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc9562',
    expected: 'a UUID',
    parse: canonicalText(t.uuid()),
  }),
} as const;

/**
 * Sets the TypeScript type of the values in JSON. graphql-codegen reads it here if it gets the schema object, and otherwise from `refold
 * schema --scalars`.
 */
function typedAs(type: string): Readonly<Record<string, unknown>> {
  return { codegenScalarType: type };
}

interface TextScalarOptions {
  readonly name: string;
  readonly description: string;
  readonly specifiedByURL?: string;
  readonly expected: string;
  /** Also accepts JSON numbers that are exact, and number literals as written. */
  readonly numbers?: boolean;
  /** Returns the value, or undefined if it is not valid. */
  parse(text: string): string | undefined;
  serialize?(value: unknown): string;
}

function textScalar({ expected, numbers = false, parse, serialize, ...config }: TextScalarOptions) {
  const parsed = (text: string | undefined, found: unknown, node?: ValueNode) => {
    const value = text === undefined ? undefined : parse(text);
    if (value === undefined) throw refusal(config.name, expected, found, node);
    return value;
  };
  return new GraphQLScalarType<string, unknown>({
    ...config,
    extensions: typedAs('string'),
    ...(serialize ? { serialize } : {}),
    parseValue(value) {
      if (numbers && typeof value === 'number' && Number.isSafeInteger(value)) return parsed(String(value), value);
      return parsed(typeof value === 'string' ? value : undefined, value);
    },
    parseLiteral(node) {
      const number = node.kind === Kind.INT || node.kind === Kind.FLOAT;
      const text = node.kind === Kind.STRING || (numbers && number) ? node.value : undefined;
      return parsed(text, shown(node), node);
    },
  });
}

/** Returns a function to the canonical form of a text in a column of this type. */
function canonicalText(column: Column): (text: string) => string | undefined {
  const codec = createRowCodec({ value: column }, ['value']);
  return (text) => {
    try {
      return codec.normaliseKey([text])[0] as string; // date, time and UUID are text
    } catch {
      return undefined;
    }
  };
}

/** Of a row's value in canonical form, of bytes, or of what is base64 already. */
function base64Of(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  const text = String(value);
  return text.startsWith('\\x') ? Buffer.from(text.slice(2), 'hex').toString('base64') : text;
}

function parsePosition(text: string | undefined, found: unknown, node?: ValueNode): PositionToken {
  try {
    if (text !== undefined) return parseToken(text);
  } catch {
    // refused below, like everything else that is not a position
  }
  throw refusal('Position', "a global position as a decimal string, such as '1042'", found, node);
}

/** Refuses bare words in a literal: they would be dropped from objects, and become null in lists. */
function refuseNames(node: ValueNode): void {
  if (node.kind === Kind.ENUM)
    throw refusal('JSON', 'texts in quotes, numbers, true, false, null, lists and objects', node.value, node);
  if (node.kind === Kind.LIST) for (const item of node.values) refuseNames(item);
  if (node.kind === Kind.OBJECT) for (const { value } of node.fields) refuseNames(value);
}

function shown(node: ValueNode): unknown {
  return 'value' in node ? node.value : node.kind;
}

function refusal(name: string, expected: string, found: unknown, node?: ValueNode): GraphQLError {
  const text = JSON.stringify(found) ?? String(found);
  const problem = `${name} expects ${expected}, found ${text.length > 80 ? `${text.slice(0, 80)}…` : text}.`;
  return new GraphQLError(problem, { ...(node ? { nodes: node } : {}), extensions: { code: 'BAD_USER_INPUT' } });
}
