import { type Logger, pino } from 'pino';
import { onTestFinished } from 'vitest';
import { defineConfig } from '../../src/config/define-config.ts';
import { createGateway, type Gateway, type GatewayParts } from '../../src/gateway/create-gateway.ts';
import type { ServedVersion } from '../../src/projections/projection/version-map.ts';
import { active, InMemoryServices } from '../schema/in-memory-services.ts';
import { allCommands, courierDayV1, type ParcelRow, parcel, parcelRow, parcelV1 } from '../schema/parcels.ts';

/** A gateway on its own port, over services in memory. */
export interface GatewayUnderTest {
  readonly gateway: Gateway;
  readonly services: InMemoryServices;
  /** The log, one object per line. */
  readonly logged: readonly Record<string, unknown>[];
  readonly endpoint: string;
  /** Sends an operation as JSON. */
  post(query: string, variables?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer>;
  /** Writes packed parcels: the rows by their ids. */
  pack(rows: Record<string, Partial<ParcelRow>>): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly { message: string; path?: unknown[]; extensions: Record<string, unknown> }[];
}

export interface TestOptions extends Partial<Omit<GatewayParts, 'options'>> {
  readonly served?: readonly ServedVersion[];
  readonly options?: Parameters<typeof defineConfig>[0]['gateway'];
}

/** Starts one; it is closed after the test, even if the test fails. */
export async function startGateway(given: TestOptions = {}): Promise<GatewayUnderTest> {
  const { served = [active(parcelV1), active(courierDayV1)], options, ...others } = given;
  const services = new InMemoryServices(served);
  const { logger, logged } = recordingLogger();
  const gateway = await createGateway({
    services,
    commands: allCommands,
    options: defineConfig({ gateway: { port: 0, ...options } }).gateway,
    development: false,
    logger,
    ...others,
  });
  onTestFinished(() => gateway.close());
  const endpoint = `${gateway.url}/graphql`;
  return {
    gateway,
    services,
    logged,
    endpoint,
    async post(query, variables, headers = {}) {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ query, variables }),
      });
      return { status: response.status, headers: response.headers, ...(await response.json()) };
    },
    async pack(rows) {
      for (const [id, row] of Object.entries(rows)) {
        await services.append(parcel, id, { type: 'ParcelPacked', payload: { row: parcelRow(row) } });
      }
    },
  };
}

function recordingLogger(): { logger: Logger; logged: Record<string, unknown>[] } {
  const logged: Record<string, unknown>[] = [];
  return { logged, logger: pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line)) }) };
}
