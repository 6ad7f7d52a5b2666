import { invalidDeclaration } from '../../errors.ts';

/** What a table hook receives. */
export interface HookContext {
  /** Runs a statement in the hook's transaction. Values are bound to `$1`, `$2` and so on. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** The quoted table name with its schema: `"read_models"."cart_summary_v2"`. */
  readonly table: string;
  readonly schema: string;
  /**
   * `cart_summary_v2`, or `cart_summary_v2_g2` after a rebuild. Use it in the names of what you create, because two tables of a version can
   * exist at once.
   */
  readonly tableName: string;
}

export type TableHook = (context: HookContext) => Promise<void> | void;

/** @throws RefoldError `INVALID_DECLARATION` if a hook is not a function */
export function tableHooks(
  subject: string,
  hooks: { readonly setUp?: TableHook | undefined; readonly tearDown?: TableHook | undefined },
): { readonly setUp: TableHook | undefined; readonly tearDown: TableHook | undefined } {
  const { setUp, tearDown } = hooks;
  for (const [name, hook] of Object.entries({ setUp, tearDown })) {
    if (hook !== undefined && typeof hook !== 'function')
      throw invalidDeclaration(subject, `'${name}' is a function that gets { query, table, schema, tableName }.`);
  }
  return { setUp, tearDown };
}
