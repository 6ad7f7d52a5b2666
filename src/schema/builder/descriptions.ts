import type { Column, Columns } from '../../projections/columns/column.ts';
import { columnKinds } from '../values/column-kinds.ts';
import { isIdName, textScalar } from './ids.ts';
import type { JsonSchema } from './json-schema.ts';

/** `totalAmount` → `Total amount` */
export function words(name: string): string {
  const text = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .trim()
    .toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The default description of a column: its kind of values and their limits. */
export function columnDescription(name: string, column: Column, columns: Columns, ids: ReadonlySet<string>): string {
  const { primaryKey, nullable } = column.flags;
  const isAlone = Object.values(columns).filter(({ flags }) => flags.primaryKey).length === 1;
  const naming = primaryKey ? `. ${isAlone ? 'The key of the row' : 'A part of the key of the row'}` : '';
  return `${words(name)}: ${heldBy(name, column, ids)}${nullable ? ', or null' : ''}${naming}.`;
}

function heldBy(name: string, { type }: Column, ids: ReadonlySet<string>): string {
  switch (type.kind) {
    case 'text':
      return textScalar(name, ids) === 'ID' ? 'an id' : 'a string';
    case 'decimal':
      return `an exact decimal with ${counted(type.precision, 'digit')}, ${type.scale} of them decimal places`;
    case 'list':
      return `a list; each item is ${heldBy(name, type.item, ids)}`;
    case 'enum':
      return 'one of the values of its type';
    case 'object':
      return 'an object';
    default:
      return columnKinds[type.kind].words;
  }
}

/** The default description of a command's property: its kind of values and their limits. */
export function propertyDescription(name: string, schema: JsonSchema): string {
  return `${words(name)}: ${takenBy(schema, isIdName(name) ? 'an id' : 'a string')}.`;
}

function takenBy(schema: JsonSchema, text: string): string {
  const { enum: choices, minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, format } = schema;
  if (choices) return 'one of the values of its type';
  switch (schema.type) {
    case 'string':
      if (format !== undefined && Object.hasOwn(formats, format)) return String(formats[format]);
      return `${text}${range(minLength, maxLength, 'character')}${pattern === undefined ? '' : `; it matches \`${pattern}\``}`;
    case 'integer':
      return `an integer${range(minimum, maximum)}`;
    case 'number':
      return `a number${range(minimum, maximum)}`;
    case 'boolean':
      return 'a boolean';
    case 'array':
      return `a list${range(minItems, maxItems, 'item')}`;
    case 'object':
      return 'an object';
    default:
      return 'any value that the command accepts';
  }
}

const formats: Readonly<Record<string, string>> = {
  'date-time': 'a time',
  date: columnKinds.date.words,
  uuid: columnKinds.uuid.words,
  email: 'an email address',
};

/** Describes a range. Validators add the bounds of safe integers if the declaration has none; those are omitted. */
function range(least: number | undefined, most: number | undefined, unit?: string): string {
  const from = least === undefined || least <= Number.MIN_SAFE_INTEGER ? undefined : least;
  const to = most === undefined || most >= Number.MAX_SAFE_INTEGER ? undefined : most;
  if (from === undefined && to === undefined) return '';
  const size = (bound: number) => (unit === undefined ? String(bound) : counted(bound, unit));
  if (from === undefined || (unit !== undefined && from === 0)) return to === undefined ? '' : `, at most ${size(to)}`;
  return to === undefined ? `, at least ${size(from)}` : `, from ${from} to ${size(to)}`;
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
