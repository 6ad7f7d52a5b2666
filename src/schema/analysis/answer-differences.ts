import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  NoUnusedFragmentsRule,
  NoUnusedVariablesRule,
  specifiedRules,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
} from 'graphql';

/** A difference between two results. */
export interface AnswerDifference {
  /** `cartSummaries.edges[].node.totalAmount`, with the response names of the operation; `errors` for differences in errors. */
  readonly path: string;
  readonly older: unknown;
  readonly newer: unknown;
}

/** Returns the document without the fields that a schema lacks, or why the rest is not valid. */
export function sharedDocument(
  schema: GraphQLSchema,
  document: DocumentNode,
): DocumentNode | { readonly problem: string } {
  const typeInfo = new TypeInfo(schema);
  let emptied: string | undefined;
  const shared = visit(
    document,
    visitWithTypeInfo(typeInfo, {
      Field: () => (typeInfo.getParentType() && !typeInfo.getFieldDef() ? null : undefined),
      // graphql 17 accepts `{ }` as valid, so check it here.
      SelectionSet: {
        leave(set) {
          if (set.selections.length === 0) emptied ??= String(typeInfo.getParentType());
        },
      },
    }),
  );
  if (emptied !== undefined) return { problem: `"${emptied}" must have at least one field selected.` };
  const [error] = validate(schema, shared, rules);
  return error ? { problem: error.message } : shared;
}

// Removing fields may leave their variables and fragments unused.
const leftOver = new Set([NoUnusedVariablesRule, NoUnusedFragmentsRule]);
const rules = specifiedRules.filter((rule) => !leftOver.has(rule));

/** Returns the places where two results differ, each once, restricted to what the newer one contains. */
export function answerDifferences(older: ExecutionResult, newer: ExecutionResult): readonly AnswerDifference[] {
  const found = new Map<string, AnswerDifference>();
  const add = (path: string, a: unknown, b: unknown) => {
    if (!found.has(path)) found.set(path, { path, older: a, newer: b });
  };
  compare(older.data ?? null, newer.data ?? null, '', add);
  const [a, b] = [older, newer].map(({ errors = [] }) =>
    errors.map(({ path, extensions }) => `${(path ?? []).join('.')} ${String(extensions.code)}`).toSorted(),
  );
  if (JSON.stringify(a) !== JSON.stringify(b)) add('errors', a, b);
  return [...found.values()];
}

function compare(a: unknown, b: unknown, path: string, add: (path: string, a: unknown, b: unknown) => void): void {
  if (Object.is(a, b)) return;
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) {
    for (const [index, item] of a.entries()) compare(item, b[index], `${path}[]`, add);
  } else if (isRecord(a) && isRecord(b)) {
    for (const [name, value] of Object.entries(b)) compare(a[name], value, path === '' ? name : `${path}.${name}`, add);
  } else if (JSON.stringify(a) !== JSON.stringify(b)) add(path, a, b);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
