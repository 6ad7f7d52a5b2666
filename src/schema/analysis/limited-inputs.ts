import type { Command } from '../../commands/define-command.ts';
import { columnLimits } from '../../projections/declaration/column-limits.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import { inputJsonSchema, type JsonSchema, resolveReference } from '../builder/json-schema.ts';

/**
 * One sentence for each indexed text column that commands can reach with a longer text: they append events that the projection folds, and
 * their input has a text of the column's name without a fitting `maxLength`. The log limits stream ids, so keys of one column are left out.
 */
export function limitedInputs(projections: readonly Projection[], commands: readonly Command[]): string[] {
  const texts = commands.map((command) => ({ command, lengths: textLengths(command) }));
  return projections.flatMap((projection) => {
    const writing = texts.filter(({ command }) => reaches(command, projection));
    return Object.entries(columnLimits(projection)).flatMap(([column, { maxBytes }]) => {
      const { type, flags } = projection.columns[column] ?? {};
      const isWhole = [...projection.keyColumns, ...projection.uniqueIndexes.flat()].includes(column);
      const isOnlyKey = flags?.primaryKey && projection.keyColumns.length === 1;
      if (type?.kind !== 'text' || maxBytes === undefined || isOnlyKey) return [];
      // A UTF-16 code unit has at most three bytes in UTF-8.
      const longer = writing.filter(({ lengths }) => (lengths.get(column) ?? 0) * 3 > maxBytes);
      if (longer.length === 0) return [];
      const names = longer.map(({ command }) => `'${command.name}'`).join(', ');
      return [
        `${projection.id}: '${column}' is indexed and holds at most ${maxBytes} bytes. The input of ${names} takes longer texts, which are refused with TEXT_TOO_LONG. Limit it with columnLimits${isWhole ? '' : ', or declare the column with .index({ long: true })'}.`,
      ];
    });
  });
}

function reaches({ families, emits }: Command, { filter, onError }: Projection): boolean {
  if (onError.policy === 'skip') return false;
  return filter.some(
    ({ family, types }) => families.some(({ name }) => name === family) && types.some((type) => emits.includes(type)),
  );
}

/** The longest text that the input takes under each name, at any depth. */
function textLengths({ name, input }: Command): ReadonlyMap<string, number> {
  const root = inputJsonSchema(input, `command '${name}'`);
  const lengths = new Map<string, number>();
  const seen = new Set<string>();
  visit('', root);
  return lengths;

  function visit(at: string, schema: JsonSchema): void {
    const { $ref, properties = {}, items, anyOf = [], oneOf = [], allOf = [] } = schema;
    const target = $ref === undefined ? undefined : resolveReference(root, $ref);
    if (target && !seen.has(`${at} ${$ref}`)) {
      seen.add(`${at} ${$ref}`);
      visit(at, target);
    }
    for (const [property, part] of Object.entries(properties)) visit(property, part);
    for (const part of [...anyOf, ...oneOf, ...allOf]) visit(at, part);
    if (typeof items === 'object') visit(at, items);
    if (isFreeText(schema))
      lengths.set(at, Math.max(lengths.get(at) ?? 0, schema.maxLength ?? Number.POSITIVE_INFINITY));
  }
}

function isFreeText({ type, enum: values, const: only, format }: JsonSchema): boolean {
  const isText = type === 'string' || (Array.isArray(type) && type.includes('string'));
  return isText && values === undefined && only === undefined && !shortFormats.has(String(format));
}

const shortFormats = new Set(['uuid', 'date', 'date-time', 'time', 'duration', 'ipv4', 'ipv6']);
