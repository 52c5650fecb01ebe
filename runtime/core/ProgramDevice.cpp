//===- ProgramDevice.cpp - Checks of a program's device tables ------------------------------===//
//
// A command with a wrong place would write anywhere in the arena, and a wait for an event that
// nobody recorded would order nothing: both are refused before anything runs.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Error.h"
#include "runtime/core/Program.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

using namespace descent;

namespace {

class DeviceChecker {
public:
  explicit DeviceChecker(const descent_program &program)
      : program(program), device(*program.device) {}

  void run() {
    require(device.target && device.capability > 0, "the device's target is not named");
    if (device.emulated)
      require(device.drivers, "emulated code comes without the emulator's drivers");
    else
      require(device.image_count > 0, "there is no code for the device");
    for (uint64_t i = 0; i < device.image_count; ++i) {
      const descent_image &image = device.images[i];
      require(image.kind == DESCENT_IMAGE_CUBIN || image.kind == DESCENT_IMAGE_PTX,
              fmt::format("image {} has the unknown kind {}", i, image.kind));
      require(image.data && image.bytes, fmt::format("image {} is empty", i));
      require(image.kind == DESCENT_IMAGE_CUBIN ||
                  static_cast<const char *>(image.data)[image.bytes - 1] == 0,
              fmt::format("image {} is PTX without an end", i));
    }
    for (uint64_t i = 0; i < program.kernel_count; ++i)
      checkCommands(program.kernels[i], program.kernels[i].commands,
                    program.kernels[i].command_count);
    for (uint64_t i = 0; i < program.function_count; ++i)
      checkFunction(program.functions[i]);
    checkStaging();
  }

private:
  void require(bool condition, const std::string &what) {
    if (!condition)
      throw Error("this program's tables are damaged: " + what + "; compile the model again");
  }

  void checkPlace(const descent_kernel &kernel, const descent_place &place, bool optional,
                  const std::string &name) {
    if (optional && place.operand == DESCENT_NO_OPERAND)
      return;
    uint64_t bytes = program.memory.device_workspace;
    if (place.operand != DESCENT_WORKSPACE) {
      require(place.operand >= 0 && static_cast<uint64_t>(place.operand) < kernel.operand_count,
              fmt::format("{} is operand {} of {}", name, place.operand, kernel.operand_count));
      bytes = byteCount(kernel.operands[place.operand]);
    }
    require(place.offset <= bytes && place.bytes <= bytes - place.offset,
            fmt::format("{} ends behind the {} bytes of its {}", name, bytes,
                        place.operand == DESCENT_WORKSPACE ? "workspace" : "operand"));
  }

  void checkCommands(const descent_kernel &kernel, const descent_command *commands,
                     uint64_t count) {
    require(commands || !count, fmt::format("kernel '{}' has no commands", kernel.name));
    for (uint64_t i = 0; i < count; ++i) {
      const descent_command &command = commands[i];
      std::string name = fmt::format("command {} of kernel '{}'", i, kernel.name);
      auto place = [&](const descent_place &where, const char *what, bool optional) {
        checkPlace(kernel, where, optional, fmt::format("{} of {}", what, name));
      };
      switch (command.kind) {
      case DESCENT_COMMAND_LAUNCH:
        require(command.function, name + " launches no function");
        for (int axis = 0; axis < 3; ++axis)
          require(command.grid[axis] > 0 && command.block[axis] > 0,
                  name + " has an empty grid or block");
        for (uint64_t j = 0; j < command.operand_count; ++j)
          place(command.operands[j], "an argument", /*optional=*/false);
        break;
      case DESCENT_COMMAND_FILL:
        require(command.operand_count == 1, name + " fills no one place");
        place(command.operands[0], "the place", /*optional=*/false);
        break;
      case DESCENT_COMMAND_PRODUCT: {
        require(command.product, name + " has no product");
        const descent_product &product = *command.product;
        place(product.a, "A", false);
        place(product.b, "B", false);
        place(product.d, "D", false);
        place(product.bias, "the bias", true);
        place(product.aux, "the saved input", true);
        place(product.bias_gradient, "the bias gradient", true);
        place(product.scale_a, "the scale of A", true);
        place(product.scale_b, "the scale of B", true);
        checkCommands(kernel, product.otherwise, product.otherwise_count);
        break;
      }
      default:
        require(false, fmt::format("{} has the unknown kind {}", name, command.kind));
      }
    }
  }

  void checkFunction(const descent_function &function) {
    std::vector<int32_t> recordedOn(function.event_count, -1); // Streams of the events so far.
    for (uint64_t i = 0; i < function.site_count; ++i) {
      const descent_site &site = function.sites[i];
      std::string name = fmt::format("launch {} of '{}'", i, function.name);
      require(site.offsets, name + " has no places");
      for (uint64_t j = 0; j < site.kernel->operand_count; ++j) {
        uint64_t bytes = byteCount(site.kernel->operands[j]), arena = program.memory.arena;
        require(site.offsets[j] % 64 == 0 && site.offsets[j] <= arena &&
                    bytes <= arena - site.offsets[j],
                fmt::format("operand {} of {} lies at {} in an arena of {} bytes", j, name,
                            site.offsets[j], arena));
      }
      require(site.stream == DESCENT_STREAM_COMPUTE || site.stream == DESCENT_STREAM_COMMUNICATION,
              fmt::format("{} is on the unknown stream {}", name, site.stream));
      for (uint64_t j = 0; j < site.wait_count; ++j) {
        int32_t event = site.waits[j];
        require(event >= 0 && static_cast<uint64_t>(event) < function.event_count &&
                    recordedOn[static_cast<size_t>(event)] >= 0,
                fmt::format("{} waits for event {}, which nothing before it records", name, event));
      }
      if (site.record < 0)
        continue;
      require(static_cast<uint64_t>(site.record) < function.event_count &&
                  recordedOn[static_cast<size_t>(site.record)] < 0,
              fmt::format("{} records event {} of {}, or records it again", name, site.record,
                          function.event_count));
      recordedOn[static_cast<size_t>(site.record)] = site.stream;
    }
  }

  void checkStaging() {
    uint64_t first = UINT64_MAX, last = 0;
    for (uint64_t i = 0; i < program.input_count; ++i) {
      const descent_tensor &tensor = program.inputs[i].tensor;
      first = std::min(first, tensor.offset);
      last = std::max(last, tensor.offset + tensor.bytes);
    }
    uint64_t slot = program.memory.device_staging / DESCENT_INPUT_SLOTS;
    require(slot >= last - first,
            fmt::format("the inputs lie in {} bytes, and a slot to stage them has {}", last - first,
                        slot));
  }

  const descent_program &program;
  const descent_device &device;
};

} // namespace

void descent::checkDevice(const descent_program &program) { DeviceChecker(program).run(); }
