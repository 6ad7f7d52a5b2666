import { invalidDeclaration } from './errors.ts';
import { closest } from './events/closest.ts';
import type { Columns, InputOf } from './projections/columns/column.ts';

/** Who asks, as an {@link Authenticator} tells. Nobody in particular is {@link anonymous}. */
export interface Viewer {
  /** Goes into the metadata of events as `actor`; null: not authenticated. */
  readonly id: string | null;
  /** What {@link tenant} compares with; null: belongs to no tenant. */
  readonly tenant: string | null;
  readonly roles: readonly string[];
  /** All that the authenticator knows of the viewer, such as the claims of a token. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** When what the viewer showed stops to count: subscriptions end then. Null: never. */
  readonly expiresAt: Date | null;
}

export const anonymous: Viewer = Object.freeze({
  id: null,
  tenant: null,
  roles: Object.freeze([]),
  claims: Object.freeze({}),
  expiresAt: null,
});

/** What a client shows of itself. */
export interface Credentials {
  /** A header of the request, or of the one that opened the WebSocket. The name in lower case. */
  header(name: string): string | undefined;
  /** What a WebSocket client sent with `connection_init`. */
  readonly connectionParams: Readonly<Record<string, unknown>>;
}

/**
 * Tells who asks. Null where a client shows nothing: it is {@link anonymous} then. Called for each operation, so it should
 * remember what is slow.
 *
 * @throws RefoldError `UNAUTHENTICATED` for what was shown and does not count; the whole operation is refused. `AUTHENTICATION_UNAVAILABLE` where
 *   it can't be told for now.
 */
export interface Authenticator {
  (credentials: Credentials): Viewer | null | Promise<Viewer | null>;
  /** What keeps it from working well at this time, such as keys that can't be fetched; logged when it comes and when it goes. */
  readonly problem?: () => string | undefined;
}

type Conditions<V> = {
  readonly [O in 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | 'startsWith' | 'ilike']?: V | null | undefined;
} & {
  readonly [O in 'in' | 'notIn']?: readonly V[] | null | undefined;
} & {
  readonly has?: ItemOf<V> | null | undefined;
} & {
  readonly [O in 'hasEvery' | 'hasSome']?: readonly ItemOf<V>[] | null | undefined;
} & {
  /** A part of a text, or of what an object or JSON holds. */
  readonly contains?: (V extends string ? string : object) | null | undefined;
} & { readonly isNull?: boolean | undefined };

type ItemOf<V> = V extends readonly (infer Item)[] ? Item : never;

/**
 * A condition over a table's columns, in the words of GraphQL's `where`, over any of them. All that is set must hold.
 * A comparison with null or undefined lets no row through: what a viewer lacks opens nothing.
 */
export type RowCondition<C extends Columns = Columns> = {
  readonly [N in keyof C & string]?: Conditions<InputOf<C[N]>>;
} & {
  readonly and?: readonly RowCondition<C>[];
  readonly or?: readonly RowCondition<C>[];
  readonly not?: RowCondition<C>;
};

/** Who may read which rows and columns of a projection. Enforced in SQL, whatever way a row is read. */
export interface AccessRules<C extends Columns = Columns> {
  /** Whether those who are not authenticated may read too; the rules decide what. @default false */
  readonly public?: boolean;
  /** The rows that the viewer may read: all, none, or those that a condition holds for. @default all */
  readonly rows?: (viewer: Viewer) => boolean | RowCondition<C>;
  /**
   * Columns that not everybody may read: whether the viewer may. To select, filter, sort or aggregate by another one is refused
   * with `FORBIDDEN`.
   */
  readonly columns?: { readonly [N in keyof C & string]?: (viewer: Viewer) => boolean };
}

/**
 * `public`: everybody. `authenticated`: whoever is authenticated. Or rules.
 */
export type Access<C extends Columns = Columns> = 'public' | 'authenticated' | AccessRules<C>;

/** Who may run a command; of a function, whoever is authenticated and for whom it gives true. */
export type CommandAccess<Input = never> =
  | 'public'
  | 'authenticated'
  | ((viewer: Viewer, input: Input) => boolean | Promise<boolean>);

/**
 * The rows of the viewer's own tenant, by the column that names it.
 *
 * @example
 * access: tenant('tenantId')
 */
export function tenant<const N extends string>(
  column: N,
): { readonly rows: (viewer: Viewer) => { readonly [K in N]: { readonly eq: string | null } } } {
  return {
    rows: (viewer) => ({ [column]: { eq: viewer.tenant } }) as { readonly [K in N]: { readonly eq: string | null } }, // one entry
  };
}

/** A projection's access, checked and frozen. @throws RefoldError `INVALID_DECLARATION` */
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
        `'access.columns' names '${name}', a key column: whoever may see a row sees its key. Use 'access.rows'.`,
      );
    if (typeof rule !== 'function')
      throw invalidDeclaration(subject, `'access.columns.${name}' is a function from the viewer to true or false.`);
  }
  return Object.freeze({ ...access, ...(access.columns ? { columns: Object.freeze({ ...access.columns }) } : {}) });
}

/** Whether two versions of a projection say the same of who may read: by the text of their rules. */
export function sameAccess(
  a: { readonly access: Access | undefined },
  b: { readonly access: Access | undefined },
): boolean {
  return a.access === b.access || accessText(a.access) === accessText(b.access);
}

function accessText(access: Access | undefined): string {
  return JSON.stringify(access, (_, value) => (typeof value === 'function' ? String(value) : value)) ?? '';
}
