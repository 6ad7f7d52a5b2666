import {
  type ExecutionResult,
  execute,
  type GraphQLSchema,
  getOperationAST,
  parse,
  subscribe,
  validate,
} from 'graphql';
import type { ServedVersion } from '../../src/projections/projection/version-map.ts';
import { buildSchema } from '../../src/schema/build-schema.ts';
import { demandedAfter } from '../../src/schema/fields/after-directive.ts';
import { active, InMemoryServices, versionMap } from './in-memory-services.ts';
import { allCommands, courierDayV1, type ParcelRow, parcel, parcelRow, parcelV1 } from './parcels.ts';

/** A schema over services in memory. */
export interface SchemaUnderTest {
  readonly schema: GraphQLSchema;
  readonly services: InMemoryServices;
  /** Executes a query or mutation; the errors of an invalid document are a result too. */
  run(source: string, variables?: Record<string, unknown>): Promise<ExecutionResult>;
  /** The data of an operation without errors. */
  answer(source: string, variables?: Record<string, unknown>): Promise<Record<string, unknown>>;
  subscribe(source: string, variables?: Record<string, unknown>): Promise<AsyncGenerator<ExecutionResult>>;
  /** Writes packed parcels: the rows by their ids. */
  pack(rows: Record<string, Partial<ParcelRow>>): Promise<void>;
}

export function schemaUnderTest(
  served: readonly ServedVersion[] = [active(parcelV1), active(courierDayV1)],
  options: { readonly maxPageSize?: number } = {},
): SchemaUnderTest {
  const services = new InMemoryServices(served);
  const { maxPageSize = 50 } = options;
  const schema = buildSchema({ versions: versionMap(served), commands: allCommands, maxPageSize });

  function argsOf(source: string, variables: Record<string, unknown> = {}) {
    const document = parse(source);
    const errors = validate(schema, document);
    const after = demandedAfter(getOperationAST(document) ?? undefined, variables, undefined);
    const contextValue = services.context(after === null ? {} : { after: after.position });
    return { errors, args: { schema, document, variableValues: variables, contextValue } };
  }

  async function run(source: string, variables?: Record<string, unknown>) {
    const { errors, args } = argsOf(source, variables);
    return errors.length > 0 ? { errors } : plain(await execute(args));
  }

  return {
    schema,
    services,
    run,
    async answer(source, variables) {
      const { data, errors } = await run(source, variables);
      if (errors) throw errors[0];
      return data as Record<string, unknown>; // without errors there is data
    },
    async subscribe(source, variables) {
      const { errors, args } = argsOf(source, variables);
      const result = errors.length > 0 ? { errors } : await subscribe(args);
      if (Symbol.asyncIterator in result) return result;
      throw result.errors?.[0];
    },
    async pack(rows) {
      for (const [id, row] of Object.entries(rows)) {
        await services.append(parcel, id, { type: 'ParcelPacked', payload: { row: parcelRow(row) } });
      }
    },
  };
}

/** The next update of a subscription, without errors. */
export async function next(updates: AsyncIterator<ExecutionResult>): Promise<Record<string, unknown>> {
  const { value } = await updates.next();
  if (value?.errors) throw value.errors[0];
  return plain(value).data;
}

/** GraphQL's objects have no prototype, and its errors have more fields than clients see. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value));
}
