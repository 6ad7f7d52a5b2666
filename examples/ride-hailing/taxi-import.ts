import { decimal, defineImport, type ImportedAppend } from '../../src/index.ts';
import { rideOrder, zone } from './events.ts';

/**
 * The public taxi rides of New York as JSON lines, one append each, in any order. The source names no ride: vendor, times and zones do, so
 * that a negative ride comes to the order whose fare it takes back. Nothing is kept between lines.
 */
export const taxiImport = defineImport({
  name: 'taxi-rides',
  description: 'The taxi rides that the city of New York publishes, as JSON lines.',
  async *toAppends(lines) {
    for await (const { text } of lines) yield rideOf(parseRow(text));
  },
});

export const zoneImport = defineImport({
  name: 'taxi-zones',
  description: 'The taxi zones of New York, as JSON lines.',
  async *toAppends(lines) {
    for await (const { text } of lines) {
      const { LocationID, Borough, Zone } = parseRow<ZoneRow>(text);
      yield {
        family: zone,
        streamId: LocationID,
        events: [{ type: 'ZoneNamed', payload: { borough: Borough, name: Zone } }],
        idempotencyKey: `taxi-zones:${LocationID}`,
      };
    }
  },
});

interface RideRow {
  /** The month of publication. */
  readonly _file: string;
  readonly _row: string;
  readonly VendorID: string;
  readonly lpep_pickup_datetime: string;
  readonly lpep_dropoff_datetime: string;
  readonly PULocationID: string;
  readonly DOLocationID: string;
  readonly total_amount: string;
}

interface ZoneRow {
  readonly LocationID: string;
  readonly Borough: string;
  readonly Zone: string;
}

function rideOf(row: RideRow): ImportedAppend {
  const total = decimal(row.total_amount);
  const amount = total.abs().toFixed(2);
  const [pickedUpAt, droppedOffAt] = [localTime(row.lpep_pickup_datetime), localTime(row.lpep_dropoff_datetime)];
  const { VendorID, PULocationID: pickupZoneId, DOLocationID: zoneId } = row;
  const ride = { driverId: null, pickupZoneId, pickedUpAt };
  const route = [pickupZoneId, zoneId].map((id) => ({ zoneId: id, address: null }));
  return {
    family: rideOrder,
    streamId: `taxi-${VendorID}-${pickedUpAt}-${droppedOffAt}-${pickupZoneId}-${zoneId}`,
    events: total.lt(0)
      ? [{ type: 'FareRefunded', payload: { pickupZoneId, pickedUpAt, amount } }]
      : [
          { type: 'OrderPlaced', payload: { riderId: null, route, price: amount } },
          { type: 'OrderAccepted', payload: { driverId: null, pickedUpAt } },
          { type: 'OrderCompleted', payload: { ...ride, droppedOffAt, price: amount } },
        ],
    idempotencyKey: `taxi-rides:${row._file}:${row._row}`,
  };
}

function localTime(text: string): string {
  return text.replace(' ', 'T');
}

/** Numbers stay the text of the file: an amount must not become a float on its way to a decimal. */
function parseRow<Row = RideRow>(text: string): Row {
  return JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? context?.source : value,
  );
}
