import { columnKinds, kindOfFormat } from '../values/column-kinds.ts';
import type { ScalarName } from './builder.ts';
import type { JsonSchema } from './json-schema.ts';

/** Returns the scalar for the values of a schema; undefined for lists, objects and choices. */
export function scalarOf(schema: JsonSchema): ScalarName | undefined {
  switch (schema.type) {
    case 'string':
      return scalarOfFormat(schema.format);
    case 'integer':
      return fitsInt(schema) ? 'Int' : 'SafeInt';
    case 'number':
      return 'Float';
    case 'boolean':
      return 'Boolean';
    default:
      return undefined;
  }
}

function scalarOfFormat(format: string | undefined): ScalarName {
  const kind = kindOfFormat(format);
  return kind ? columnKinds[kind].scalar : 'String';
}

const largestInt = 2 ** 31 - 1;

/** Whether the values fit into an Int. Validators add the bounds of safe integers if the declaration has none; those count as no bounds. */
function fitsInt({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonSchema): boolean {
  const bounds = [minimum, maximum, exclusiveMinimum, exclusiveMaximum].filter((bound) => bound !== undefined);
  return bounds.every((bound) => Math.abs(bound) <= largestInt + 1 || Math.abs(bound) >= Number.MAX_SAFE_INTEGER);
}
