import type { OperationContext } from '../../schema/contract/operation-context.ts';
import type { SchemaExtension } from '../../schema/extend-schema.ts';

/** Returns what the application adds to the context of its resolvers. */
export type ContextOf = NonNullable<SchemaExtension['context']>;

// A query that is executed again has the same context, with the values of the first try.
const addedTo = new WeakMap<object, ReadonlySet<string>>();

/** Adds the application's values to the context. They can't replace what Refold's resolvers need. */
export async function addToContext<C extends OperationContext>(context: C, contextOf: ContextOf): Promise<C> {
  const added: unknown = await contextOf(context);
  if (typeof added !== 'object' || added === null)
    throw new Error(`extendSchema: 'context' returned ${String(added)}; it returns an object.`);
  const names = Object.keys(added);
  const before = addedTo.get(context);
  const taken = names.find((name) => name in context && !before?.has(name));
  if (taken !== undefined)
    throw new Error(
      `extendSchema: 'context' returned '${taken}', which the context has already. Name yours otherwise.`,
    );
  addedTo.set(context, new Set(names));
  return Object.assign(context, added);
}
