import type { Access, CommandAccess, RowCondition, Viewer } from '../../access.ts';
import type { Command } from '../../commands/define-command.ts';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { Column } from '../../projections/columns/column.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import { called, withoutTraps } from '../../thrown.ts';
import { rowFilter } from '../input/where.ts';
import { comparedColumn, operatorsOf, type WhereInput } from '../types/filter-types.ts';
import { inputValue } from '../values/column-kinds.ts';

/** The permissions of one viewer, checked before every read and every command of its operations. */
export interface Guard {
  /**
   * Returns the rows of a projection that the viewer may read; null for all.
   *
   * @throws RefoldError `UNAUTHENTICATED`
   */
  rowsOf(projection: Projection): RowFilter | null;
  /** @throws RefoldError `FORBIDDEN` for the first column that the viewer may not read */
  checkColumns(projection: Projection, columns: Iterable<string>): void;
  /**
   * Returns what the viewer may read of the payload of an event behind a row; null for nothing.
   *
   * @throws RefoldError `FORBIDDEN` if it may not read the events, or if `payloads` are wanted and it may read nothing of any of them
   */
  payloadsOf(projection: Projection, wanted: boolean): (event: RecordedEvent) => unknown;
  /** @throws RefoldError `UNAUTHENTICATED`, `FORBIDDEN`; InvalidInput if a rule needs the input and it is not valid */
  checkCommand(command: Command, input: unknown): Promise<void>;
}

export const noRows: RowFilter = Object.freeze({ kind: 'or', filters: Object.freeze([]) });

/** `byDefault` applies to projections and commands that declare no access. */
export function createGuard(viewer: Viewer, byDefault: 'public' | 'authenticated'): Guard {
  const rows = new Map<Projection, RowFilter | null>();

  function requireIdentity(access: Access | undefined): void {
    const open = access === 'public' || (typeof access === 'object' && access.public === true);
    if (!open && viewer.id === null) throw unauthenticated();
  }

  function readsColumns({ access, columns }: Projection): boolean {
    const rules = typeof access === 'object' ? access.columns : undefined;
    return Object.keys(columns).every((name) => !rules?.[name] || rules[name](viewer) === true);
  }

  return {
    rowsOf(projection) {
      const access = projection.access ?? byDefault;
      requireIdentity(access);
      const known = rows.get(projection);
      if (known !== undefined) return known;
      const rule = typeof access === 'object' ? access.rows : undefined;
      const filter = rule
        ? ruleFilter(
            projection,
            called(() => rule(viewer)),
          )
        : null;
      rows.set(projection, filter);
      return filter;
    },
    checkColumns(projection, columns) {
      const rules = typeof projection.access === 'object' ? projection.access.columns : undefined;
      if (!rules) return;
      for (const name of columns) {
        const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
        if (rule && called(() => rule(viewer)) !== true)
          throw forbidden(`You may not read '${name}' of ${projection.graphql.type}.`);
      }
    },
    payloadsOf(projection, wanted) {
      const { access: declared, graphql, historyRules: { access, payload } = {} } = projection;
      if (access && access(viewer) !== true) throw forbidden(`You may not read the events of ${graphql.type}.`);
      if (declared === undefined && !payload) return (event) => event.payload;
      const whole = readsColumns(projection);
      const open = new Map<string, true | readonly string[]>();
      for (const [type, rule] of Object.entries(payload ?? {})) {
        const fields = typeof rule === 'function' ? rule(viewer) : rule;
        if (Array.isArray(fields) || (fields === true && whole)) open.set(type, fields as true | readonly string[]); // of these two
      }
      if (wanted && open.size === 0)
        throw forbidden(
          `You may not read 'payload' of ${graphql.type}Event: 'history.payload' opens none of them to you.`,
        );
      return ({ type, payload }) => openFields(payload, open.get(type));
    },
    async checkCommand(command, input) {
      await checkAccess(viewer, command.access ?? byDefault, () => command.parse(input), {
        unauthenticated: needsAuthentication,
        forbidden: `You may not run '${command.name}'.`,
      });
    },
  };
}

/**
 * Checks who may run a command or use a field of the application. `given` returns what a rule receives in addition to the viewer.
 *
 * @throws RefoldError `UNAUTHENTICATED`, `FORBIDDEN`, with these messages
 */
export async function checkAccess(
  viewer: Viewer,
  access: CommandAccess,
  given: () => unknown,
  messages: { readonly unauthenticated: string; readonly forbidden: string },
): Promise<void> {
  if (access === 'public') return;
  if (viewer.id === null) throw unauthenticated(messages.unauthenticated);
  if (access === 'authenticated') return;
  const input = (await given()) as never; // of the type that its declaration says
  const check = async () => access(viewer, input);
  const allowed = await check().catch((thrown: unknown) => Promise.reject(withoutTraps(thrown)));
  if (allowed !== true) throw forbidden(messages.forbidden);
}

const needsAuthentication = 'This needs authentication.';

export function unauthenticated(problem = needsAuthentication): RefoldError<'UNAUTHENTICATED'> {
  return new RefoldError('UNAUTHENTICATED', problem);
}

function forbidden(problem: string): RefoldError<'FORBIDDEN'> {
  return new RefoldError('FORBIDDEN', problem);
}

function openFields(payload: unknown, fields: true | readonly string[] | undefined): unknown {
  if (fields === true) return payload;
  if (!fields || typeof payload !== 'object' || payload === null) return null;
  return Object.fromEntries(Object.entries(payload).filter(([name]) => fields.includes(name)));
}

/** Anything except true or a condition matches no row. */
function ruleFilter(projection: Projection, allowed: boolean | RowCondition): RowFilter | null {
  if (allowed === true) return null;
  if (typeof allowed !== 'object' || allowed === null) return noRows;
  const where = conditionInput(projection, allowed as WhereInput); // the same shape, with values as in `evolve`
  return where === nothing ? noRows : rowFilter(projection, where);
}

const nothing = Symbol('no row');

/** Converts a condition to the form that clients send. If it compares with null (an attribute that the viewer lacks), it matches no row. */
function conditionInput(projection: Projection, condition: WhereInput): WhereInput | typeof nothing {
  const input: Record<string, unknown> = {};
  for (const [name, given] of Object.entries(condition)) {
    if (given === undefined || given === null) return nothing; // else a missing attribute would open all rows
    if (name === 'and' || name === 'or' || name === 'not') {
      const parts = (name === 'not' ? [given] : given) as readonly WhereInput[]; // typed as a list
      const inputs = parts.map((part) => conditionInput(projection, part));
      if (inputs.includes(nothing)) return nothing;
      input[name] = name === 'not' ? inputs[0] : inputs;
      continue;
    }
    const column = Object.hasOwn(projection.columns, name) ? projection.columns[name] : undefined;
    if (!column) throw ruleError(projection, `names '${name}', which is not a column.`, name);
    const operators = operatorInput(projection, name, column, given as WhereInput); // typed as operators
    if (operators === nothing) return nothing;
    input[name] = operators;
  }
  return input;
}

function operatorInput(projection: Projection, name: string, column: Column, operators: WhereInput) {
  const input: Record<string, unknown> = {};
  for (const [operator, value] of Object.entries(operators)) {
    if (!(operatorsOf(column) as readonly string[]).includes(operator))
      throw ruleError(projection, `compares '${name}' by '${operator}', which columns of its type do not have.`);
    if (value === null || value === undefined) return nothing;
    if (Array.isArray(value) && value.some((one) => one === null || one === undefined)) return nothing;
    const compared = comparedColumn(column);
    if (!compared)
      input[operator] = value; // JSON is passed unchanged
    else
      input[operator] = Array.isArray(value)
        ? value.map((one) => inputValue(compared, one))
        : inputValue(compared, value);
  }
  return input;
}

// Not a RefoldError: the message is logged, and clients get a masked error.
function ruleError(projection: Projection, problem: string, name?: string): Error {
  const hint = name === undefined ? '' : closest(name, Object.keys(projection.columns));
  return new Error(`${projection.id}: its access rule ${problem}${hint}`);
}
