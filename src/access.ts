import { invalidDeclaration } from './errors.ts';
import { closest } from './events/closest.ts';
import type { Columns, InputOf } from './projections/columns/column.ts';
import type { TextOperator } from './projections/queries/text-operators.ts';

/** The caller of an operation, as returned by an {@link Authenticator}. A caller without credentials is {@link anonymous}. */
export interface Viewer {
  /** Recorded as `actor` in the metadata of events. Null: not authenticated. */
  readonly id: string | null;
  /** The value that {@link tenant} compares with. Null: the viewer belongs to no tenant. */
  readonly tenant: string | null;
  readonly roles: readonly string[];
  /** Everything the authenticator knows about the viewer, such as the claims of a token. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** When the viewer's credentials expire; subscriptions end at that time. Null: never. */
  readonly expiresAt: Date | null;
}

export const anonymous: Viewer = Object.freeze({
  id: null,
  tenant: null,
  roles: Object.freeze([]),
  claims: Object.freeze({}),
  expiresAt: null,
});

/** The credentials that a client sends. */
export interface Credentials {
  /** Returns a header of the request, or of the request that opened the WebSocket. The name is in lower case. */
  header(name: string): string | undefined;
  /** The payload that a WebSocket client sent with `connection_init`. */
  readonly connectionParams: Readonly<Record<string, unknown>>;
}

/**
 * Authenticates a caller. Returns null if the client sent no credentials; the caller is {@link anonymous} then.
 * Refold calls it for each operation, so an implementation should cache slow work.
 *
 * @throws RefoldError `UNAUTHENTICATED` if the credentials are invalid; the whole operation is refused. `AUTHENTICATION_UNAVAILABLE` if
 * they cannot be checked at the moment.
 */
export interface Authenticator {
  (credentials: Credentials): Viewer | null | Promise<Viewer | null>;
  /**
   * Returns what prevents authentication at the moment, such as keys that cannot be fetched. Logged when the problem starts and when it
   * ends.
   */
  readonly problem?: () => string | undefined;
}

type Conditions<V> = {
  readonly [O in 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | Exclude<TextOperator, 'contains'>]?: V | null | undefined;
} & {
  readonly [O in 'in' | 'notIn']?: readonly V[] | null | undefined;
} & {
  readonly between?: readonly [V, V] | null | undefined;
} & {
  readonly has?: ItemOf<V> | null | undefined;
} & {
  readonly [O in 'hasEvery' | 'hasSome']?: readonly ItemOf<V>[] | null | undefined;
} & {
  /** A substring of a text, or a part of an object or JSON value. */
  readonly contains?: (V extends string ? string : object) | null | undefined;
} & { readonly isNull?: boolean | undefined };

type ItemOf<V> = V extends readonly (infer Item)[] ? Item : never;

/**
 * A condition over the columns of a table, with the operators of GraphQL's `where`. It may use any column. All operators that are set must
 * hold.
 * A comparison with null or undefined matches no row. So an attribute that the viewer lacks never grants access.
 */
export type RowCondition<C extends Columns = Columns> = {
  readonly [N in keyof C & string]?: Conditions<InputOf<C[N]>>;
} & {
  readonly and?: readonly RowCondition<C>[];
  readonly or?: readonly RowCondition<C>[];
  readonly not?: RowCondition<C>;
};

/** The rules that decide which rows and columns of a projection a viewer may read. They are enforced in SQL on every read path. */
export interface AccessRules<C extends Columns = Columns> {
  /** Whether viewers who are not authenticated may read too. The other rules still apply to them. @default false */
  readonly public?: boolean;
  /** The rows that the viewer may read: all (`true`), none (`false`), or the rows that match a condition. @default all */
  readonly rows?: (viewer: Viewer) => boolean | RowCondition<C>;
  /**
   * Restricted columns: for each, whether the viewer may read it. Selecting, filtering, sorting or aggregating by a column that the viewer
   * may not read is refused with `FORBIDDEN`.
   */
  readonly columns?: { readonly [N in keyof C & string]?: (viewer: Viewer) => boolean };
}

/** `'public'`: everybody may read. `'authenticated'`: every authenticated viewer may read. Or rules. */
export type Access<C extends Columns = Columns> = 'public' | 'authenticated' | AccessRules<C>;

/** Who may run a command. A function allows authenticated viewers for whom it returns true. */
export type CommandAccess<Input = never> =
  | 'public'
  | 'authenticated'
  | ((viewer: Viewer, input: Input) => boolean | Promise<boolean>);

/**
 * Allows the rows of the viewer's own tenant, by the column that holds the tenant.
 *
 * @example
 * access: tenant('tenantId')
 */
export function tenant<const N extends string>(
  column: N,
): { readonly rows: (viewer: Viewer) => { readonly [K in N]: { readonly eq: string | null } } } {
  return {
    rows: (viewer) => ({ [column]: { eq: viewer.tenant } }) as { readonly [K in N]: { readonly eq: string | null } }, // a single entry
  };
}

/** Checks and freezes the access of a projection. @throws RefoldError `INVALID_DECLARATION` */
export function checkAccess(
  subject: string,
  columns: Columns,
  keyColumns: readonly string[],
  access: Access | undefined,
): Access | undefined {
  if (access === undefined || access === 'public' || access === 'authenticated') return access;
  if (typeof access !== 'object' || access === null)
    throw invalidDeclaration(subject, `'access' is 'public', 'authenticated' or rules: { rows, columns, public }.`);
  const known = ['public', 'rows', 'columns'];
  for (const name of Object.keys(access)) {
    if (!known.includes(name))
      throw invalidDeclaration(subject, `unknown access rule '${name}'.${closest(name, known)}`);
  }
  if (access.public !== undefined && typeof access.public !== 'boolean')
    throw invalidDeclaration(subject, `'access.public' is true or false.`);
  if (access.rows !== undefined && typeof access.rows !== 'function')
    throw invalidDeclaration(subject, `'access.rows' is a function from the viewer to true, false or a condition.`);
  for (const [name, rule] of Object.entries(access.columns ?? {})) {
    if (!Object.hasOwn(columns, name))
      throw invalidDeclaration(
        subject,
        `'access.columns' names '${name}', which the table does not declare.${closest(name, Object.keys(columns))}`,
      );
    if (keyColumns.includes(name))
      throw invalidDeclaration(
        subject,
        `'access.columns' names '${name}', a key column: a viewer who may read a row sees its key. Use 'access.rows'.`,
      );
    if (typeof rule !== 'function')
      throw invalidDeclaration(subject, `'access.columns.${name}' is a function from the viewer to true or false.`);
  }
  return Object.freeze({ ...access, ...(access.columns ? { columns: Object.freeze({ ...access.columns }) } : {}) });
}

/** Whether two versions of a projection have the same access rules. Functions are compared by their source text. */
export function sameAccess(
  a: { readonly access: Access | undefined },
  b: { readonly access: Access | undefined },
): boolean {
  return a.access === b.access || accessText(a.access) === accessText(b.access);
}

function accessText(access: Access | undefined): string {
  return JSON.stringify(access, (_, value) => (typeof value === 'function' ? String(value) : value)) ?? '';
}
