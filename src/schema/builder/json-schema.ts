import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { invalidDeclaration } from '../../errors.ts';
import { reasonOf } from '../../thrown.ts';

/** The part of JSON Schema (draft 2020-12) that validators generate for inputs. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: boolean | JsonSchema;
  readonly prefixItems?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
}

/**
 * Returns the input type of a validator as JSON Schema, according to the Standard JSON Schema specification
 * (https://standardschema.dev/json-schema).
 *
 * @throws RefoldError `INVALID_DECLARATION` if the validator does not support it, or cannot express its input type.
 */
export function inputJsonSchema(schema: StandardSchemaV1, owner: string): JsonSchema {
  const standard = schema['~standard'] as StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>; // implemented by some validators
  if (typeof standard.jsonSchema?.input !== 'function') {
    throw invalidDeclaration(
      owner,
      `the input's validator (${standard.vendor}) gives no JSON Schema, from which its GraphQL type is made. Use one that implements Standard JSON Schema, such as zod from 4.2 on.`,
    );
  }
  try {
    return standard.jsonSchema.input({ target: 'draft-2020-12' }) as JsonSchema; // according to the target
  } catch (cause) {
    const reason = reasonOf(cause);
    throw invalidDeclaration(
      owner,
      `the input has a type that JSON can't hold (${reason}). Take it as a string, and check the string.`,
    );
  }
}

/** Resolves a reference within the schema. */
export function resolveReference(root: JsonSchema, reference: string): JsonSchema | undefined {
  if (reference === '#') return root;
  const name = /^#\/\$defs\/(.+)$/.exec(reference)?.[1];
  return name === undefined
    ? undefined
    : root.$defs?.[decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~')];
}

/**
 * Returns the name of a definition that the declaration named, such as `ProductItem`. Validators generate names too, in lower case or with
 * underscores.
 */
export function definitionName({ $ref }: JsonSchema): string | undefined {
  return /^#\/\$defs\/([A-Z][A-Za-z0-9_]*)$/.exec($ref ?? '')?.[1];
}

/** Serializes a definition with its references expanded. Definitions are equal if their texts are equal, even from different roots. */
export function expandedText(definition: JsonSchema, root: JsonSchema): string {
  const within = [definition];
  const entries = (value: object) =>
    Object.fromEntries(Object.entries(value).map(([key, part]) => [key, expand(part)]));

  function expand(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(expand);
    if (typeof value !== 'object' || value === null) return value;
    const { $ref, ...own } = value as JsonSchema; // or a part of a schema
    const target = $ref === undefined ? undefined : resolveReference(root, $ref);
    if (!target) return entries(own);
    const level = within.indexOf(target);
    if (level >= 0) return [level, entries(own)];
    within.push(target);
    const expanded = [entries(target), entries(own)];
    within.pop();
    return expanded;
  }

  return JSON.stringify(entries(definition));
}
